// The thread that makes every MPI call of kolo and advances all collectives, while the program computes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/progress/flight_recorder.h>
#include <kolo/collectives/progress/timeline.h>
#include <kolo/collectives/progress/watch.h>
#include <kolo/core/base/mutex.h>

namespace kolo {

/// An operation for the thread. Those of one channel run one after the other, in the order of submission,
/// which is the same on all ranks; operations of different channels run at the same time.
struct Submission {
  int channel = 0;
  std::int64_t ticket = 0;  // its number on the channel: grows, and is the same on all ranks
  std::shared_ptr<Collective> operation;
  std::string_view label;  // what a stall report calls it; lives until `done` is called
  // On the communication thread, once: nullptr or what went wrong. Must be quick and must not throw.
  std::function<void(std::exception_ptr)> done;
  // What the flight recorder is to know beyond channel, ticket and label.
  OperationDetails details = {};
  // The caller has started it already, and waited for it since then.
  std::optional<std::chrono::steady_clock::time_point> started = {};
  // The thread's own:
  FlightRecorder::Sequence record = 0;
  std::chrono::steady_clock::time_point submitted = {};
};

/// Work without an end that the thread advances between the operations: the engine's negotiation.
class Resident {
 public:
  /// idle: nothing is under way that concerns this rank; waiting: it waits for other ranks, or for a moment
  /// that is near; resting: for a moment that is near, and wake() comes if it is not to wait.
  enum class State { idle, resting, waiting, advanced };
  virtual ~Resident() = default;
  /// Does what can be done without waiting. Must not throw.
  virtual State advance(std::chrono::steady_clock::time_point now) = 0;
};

/// Public functions: any thread but the communication thread itself, unless they say otherwise.
class CommThread {
 public:
  /// core: the one to stay on.
  explicit CommThread(std::optional<int> core = std::nullopt);
  /// Ends what is pending as close() does, then joins.
  ~CommThread();
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

  /// Runs `work` on the thread and waits for it; rethrows what it throws. For MPI calls that are no
  /// operations.
  void call(const std::function<void()>& work) KOLO_EXCLUDES(mutex_);
  bool is_current() const { return std::this_thread::get_id() == thread_.get_id(); }
  /// From then on operations that cannot end are ended. Only inside call().
  void set_watchdog(std::unique_ptr<Watchdog> watchdog) { watchdog_ = std::move(watchdog); }
  Watchdog* watchdog() { return watchdog_.get(); }
  /// nullptr: none any more. It must outlive its stay. Only inside call().
  void set_resident(Resident* resident) { resident_ = resident; }
  /// The resident has something new to do. Any thread.
  void wake() KOLO_EXCLUDES(mutex_);
  /// The operations of this thread; it is written to a file when one of them fails.
  FlightRecorder& recorder() { return recorder_; }
  /// From then on each operation is drawn: its wait, its run and its phases; nullptr ends that. Only inside
  /// call().
  void set_timeline(std::shared_ptr<Timeline> timeline) KOLO_EXCLUDES(mutex_);
  Timeline* timeline() { return timeline_.get(); }
  std::shared_ptr<Timeline> take_timeline() KOLO_EXCLUDES(mutex_);
  /// Called on the thread when every operation has been given up, before anybody is told: who hears of it may
  /// end the process. Only inside call().
  void set_last_words(std::function<void()> work) { last_words_ = std::move(work); }
  /// Called on the thread about ten times a second, or more often. Only inside call().
  void set_idle_work(std::function<void()> work) { idle_work_ = std::move(work); }

  /// A new channel's number on this rank. Without a set it is one of all ranks, which open these in the same
  /// order; else one of the process set with that id, whose ranks open its channels in the same order.
  int open_channel(int process_set = 0) KOLO_EXCLUDES(mutex_);
  /// What all its ranks call the channel, and no other channel: for the watchdog, and in records.
  int shared_number(int channel) KOLO_EXCLUDES(mutex_);
  /// Any thread, the communication thread too. An error of one operation is the answer to all that follow on
  /// the channels of its process set.
  void submit(Submission submission) KOLO_EXCLUDES(mutex_);
  /// Whether the caller may start an operation of the channel, one that does not need this thread, and
  /// advance it itself, which saves waking this one: nothing else of the channel is under way. It sets
  /// Submission::started; in the end it says ended_here(), or submits it after all. One at a time on a
  /// channel.
  bool may_run_here(int channel) KOLO_EXCLUDES(mutex_);
  /// `done` is the caller's affair.
  void ended_here(const Submission& submission) KOLO_EXCLUDES(mutex_);
  /// Runs the operation with the channel's next ticket and waits. Not on channels that submit() is used with,
  /// and one thread at a time on a channel. An operation that does not need this thread is started and
  /// advanced by the caller, which saves two hand-overs; where it waits long for other ranks it is handed
  /// over.
  void run(int channel, std::shared_ptr<Collective> operation, const std::string& label)
      KOLO_EXCLUDES(mutex_);

  /// There are more ranks on this host than cores: who waits for them lets them run.
  void set_crowded(bool crowded) { crowded_ = crowded; }

  /// Pending operations, and all later ones, end in AbortedError `kolo was shut down while <label> was
  /// pending`.
  void close() KOLO_EXCLUDES(mutex_);
  /// Inside call(): what each channel, by its number on this rank, has finished; the first error of an
  /// operation of the process set, if any.
  const std::vector<Reached>& finished() const { return finished_; }
  std::exception_ptr error(int process_set = 0) const;
  /// On this thread: what is pending in the process set, and all that follows, ends with this error.
  void fail(int process_set, const std::exception_ptr& error);

 private:
  using Clock = std::chrono::steady_clock;
  // First in, first out, in memory that is kept: a deque allocates every few elements.
  class Queue {
   public:
    bool empty() const { return first_ == submissions_.size(); }
    Submission& front() { return submissions_[first_]; }
    const Submission& front() const { return submissions_[first_]; }
    void push(Submission submission);
    Submission pop();

   private:
    std::vector<Submission> submissions_;
    std::size_t first_ = 0;
  };
  struct Channel {
    int process_set = 0;
    Queue queue;
    bool started = false;  // the front one
    Clock::time_point since;
    std::exception_ptr error;     // a rank that its operations need is gone
    const char* phase = nullptr;  // kept up with while there is a timeline
    Clock::time_point phase_since;
  };

  void draw(const Channel& channel, Clock::time_point now);
  void draw_phase(Channel& channel);
  void record(Submission& submission) KOLO_REQUIRES(mutex_);
  void ended(int channel) KOLO_EXCLUDES(mutex_);
  // False: it has not finished, and waits. since: about when it started, where that is a while ago.
  bool run_here(Collective& operation, std::optional<Clock::time_point>& since) const;
  void run_on_thread(Submission submission) KOLO_EXCLUDES(mutex_);
  void refuse_callers() KOLO_EXCLUDES(mutex_);
  void loop(std::stop_token stop);
  void take_new() KOLO_EXCLUDES(mutex_);
  void enqueue(Submission& submission);
  bool advance();
  bool advance(Channel& channel);
  void finish(Channel& channel, std::exception_ptr error);
  void watch(Clock::time_point now);
  void fail(Channel& channel, std::exception_ptr error);
  void record_failure(int process_set, const std::exception_ptr& error);
  void fail_all(std::exception_ptr error);
  void give_up(const std::exception_ptr& error);
  void rest(const std::stop_token& stop, Clock::time_point now, bool busy, bool at_once)
      KOLO_EXCLUDES(mutex_);

  // The communication thread's own.
  std::vector<Channel> channels_;
  std::vector<Reached> finished_;
  std::vector<Waiting> waiting_;
  std::vector<Channel*> waiting_channels_;  // of waiting_
  std::unique_ptr<Watchdog> watchdog_;
  Resident* resident_ = nullptr;
  std::shared_ptr<Timeline> timeline_;
  std::function<void()> idle_work_, last_words_;
  std::exception_ptr error_;                  // of all process sets
  std::map<int, std::exception_ptr> errors_;  // of one
  bool closed_ = false;
  std::set<int> recorded_failures_;  // of process sets; 0: of the job
  // Operations that were given up half-way: messages still on their way refer to their memory.
  std::vector<std::shared_ptr<Collective>> abandoned_;
  std::vector<Submission> taken_;
  std::vector<std::function<void()>> taken_calls_;
  int idle_polls_ = 0;
  bool moved_ = false;  // some operation, without finishing
  Clock::time_point last_watch_, last_advance_;
  FlightRecorder recorder_;  // any thread's

  Mutex mutex_;
  CondVar wake_;
  std::vector<Submission> new_ KOLO_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> calls_ KOLO_GUARDED_BY(mutex_);
  bool woken_ KOLO_GUARDED_BY(mutex_) = false;                 // for the resident
  std::vector<std::int64_t> tickets_ KOLO_GUARDED_BY(mutex_);  // next one of run(), by channel
  std::vector<std::int64_t> ran_ KOLO_GUARDED_BY(mutex_);      // last one that a caller has finished itself
  std::vector<int> pending_ KOLO_GUARDED_BY(mutex_);           // submissions, by channel
  std::vector<int> shared_numbers_ KOLO_GUARDED_BY(mutex_);    // by channel
  std::map<int, int> opened_ KOLO_GUARDED_BY(mutex_);          // by process set: how many channels
  bool callers_run_ KOLO_GUARDED_BY(mutex_) = true;            // false after an error, and while all is drawn
  std::atomic<bool> crowded_{false};
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace kolo
