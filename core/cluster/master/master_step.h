// One step under way: its parts on the tasks, from their start to the first error or the last result.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/worker/worker.h>
#include <kolo/core/runtime/cancellation.h>

namespace kolo::detail {

/// A part as it stands registered on its task.
struct RegisteredPart {
  std::string task;
  std::shared_ptr<Worker> worker;
  std::uint64_t handle = 0;
  std::vector<std::string> taken, given;  // as in RunPartRequest
  bool has_fetches = true;
};

/// Runs a part on the caller's thread, in the master's own process.
using RunPartHere = std::function<PartResult(const RunPartRequest& request, const Deadline& deadline,
                                             StepCancellation& cancellation)>;

struct MasterStepOptions {
  std::string session;
  std::int64_t number = 0;
  std::vector<RegisteredPart> parts;  // that of the master's own task is the last one, if there is one
  std::string own_task;
  RunPartHere run_here = {};  // without it the own task's part is run as any other
  Deadline deadline = {};
  std::chrono::milliseconds stall_warning{0};  // 0: never
  /// A task whose loss is what failed the step; called before the step ends.
  std::function<void(const std::string& task)> on_lost = {};
};

/// Any thread, but for run(). Owned by shared pointers.
class MasterStep : public std::enable_shared_from_this<MasterStep> {
 public:
  using Clock = std::chrono::steady_clock;
  explicit MasterStep(MasterStepOptions options);

  /// Starts the parts, the other tasks' first, and waits for all. Returns their results in the order of the
  /// parts. Throws the first error that is not another one's consequence, with its task; all others are
  /// cancelled then. request(part): what that part is asked for, but for session, part, step and request id.
  std::vector<PartResult> run(const std::function<RunPartRequest(std::size_t part)>& request,
                              const std::stop_token& stop) KOLO_EXCLUDES(mutex_);

  /// Ends the step with `error`, unless it has failed already. Does not wait.
  void cancel(std::exception_ptr error) KOLO_EXCLUDES(mutex_);
  /// The task is away: ends the step if a part of it is there and not done.
  void lose(const std::string& task, const std::exception_ptr& why) KOLO_EXCLUDES(mutex_);

  /// When it wants to be looked at next; far away where there is nothing to look for.
  Clock::time_point next_look() KOLO_EXCLUDES(mutex_);
  /// What is due: the deadline, a line about a stall, the end of the patience with a mere consequence. Does
  /// not wait.
  void look(Clock::time_point now) KOLO_EXCLUDES(mutex_);

  std::int64_t number() const { return options_.number; }

 private:
  struct PartState {
    std::shared_ptr<Call> call;
    bool started = false;
    bool done = false;
  };
  using Wait = TaskStatus::Wait;

  void start(std::size_t part, RunPartRequest request);
  void run_here(std::size_t part, const RunPartRequest& request, const Deadline& deadline);
  void finished(std::size_t part, std::exception_ptr error, PartResult result);
  /// Keeps the first one; returns what is to be cancelled.
  std::vector<std::shared_ptr<Call>> fail(std::exception_ptr error) KOLO_REQUIRES(mutex_);
  std::vector<std::string> unfinished() KOLO_EXCLUDES(mutex_);
  /// What the task says that the step waits for there.
  std::vector<Wait> waits_on(const std::string& task, Clock::time_point deadline);
  void tell_deadline();
  void tell_stall(std::chrono::milliseconds age);

  MasterStepOptions options_;
  const Clock::time_point began_ = Clock::now();
  Mutex mutex_;
  CondVar changed_;
  std::vector<PartState> states_;  // written under the lock; read without after run()
  std::vector<PartResult> results_ KOLO_GUARDED_BY(mutex_);
  std::size_t open_ KOLO_GUARDED_BY(mutex_) = 0;  // parts that have begun and not ended
  std::exception_ptr error_ KOLO_GUARDED_BY(mutex_);
  std::exception_ptr consequence_ KOLO_GUARDED_BY(mutex_);
  Clock::time_point patience_ KOLO_GUARDED_BY(mutex_) = Clock::time_point::max();  // with a consequence alone
  Clock::time_point next_stall_ KOLO_GUARDED_BY(mutex_) = Clock::time_point::max();
  std::chrono::milliseconds stall_age_ KOLO_GUARDED_BY(mutex_){0};
  bool timed_out_ KOLO_GUARDED_BY(mutex_) = false;
  bool telling_stall_ KOLO_GUARDED_BY(mutex_) = false;
  // They ask tasks, which takes its time; ended before the step is.
  std::jthread deadline_thread_ KOLO_GUARDED_BY(mutex_);
  std::jthread stall_thread_ KOLO_GUARDED_BY(mutex_);
};

/// Looks at the steps of a master when they want it: one thread of its own. Any thread.
class StepKeeper {
 public:
  StepKeeper();
  ~StepKeeper();
  /// Looked at from now on, as long as this lives.
  class Kept {
   public:
    Kept(StepKeeper& keeper, MasterStep& step) : keeper_(keeper), step_(step) { keeper_.add(step); }
    ~Kept() { keeper_.remove(step_); }
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

   private:
    StepKeeper& keeper_;
    MasterStep& step_;
  };

 private:
  void add(MasterStep& step) KOLO_EXCLUDES(mutex_);
  void remove(MasterStep& step) KOLO_EXCLUDES(mutex_);
  void keep() KOLO_EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::vector<MasterStep*> steps_ KOLO_GUARDED_BY(mutex_);
  MasterStep::Clock::time_point next_ KOLO_GUARDED_BY(mutex_) = MasterStep::Clock::time_point::max();
  bool over_ KOLO_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace kolo::detail
