// A queue of work that a device does in order, behind the back of the executor's threads.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include <kolo/core/base/mutex.h>

namespace kolo {

/// What a stream had been given when the event was recorded last. One thread at a time records it.
class StreamEvent {
 public:
  StreamEvent() = default;
  virtual ~StreamEvent() = default;
  StreamEvent(const StreamEvent&) = delete;
  StreamEvent& operator=(const StreamEvent&) = delete;

 private:
  friend class Stream;
  std::uint64_t stream_ = 0;
  std::map<std::uint64_t, std::uint64_t> behind_;  // by stream: how many of its records have passed with it
};

/// What a stream was given once, kept so that it can be given again. Its stream outlives it; who drops it has
/// waited for what it launched.
class StreamGraph {
 public:
  StreamGraph() = default;
  virtual ~StreamGraph() = default;
  StreamGraph(const StreamGraph&) = delete;
  StreamGraph& operator=(const StreamGraph&) = delete;
  /// Enqueues all of it. Throws the error of a device that failed.
  virtual void launch() = 0;
  /// How many pieces of work native() keeps; 0 without native().
  virtual int nodes() const = 0;
};

/// Any thread. The destructor waits for what is still queued.
class Stream {
 public:
  /// How the end of what was queued is told, once, from any thread; with the error of a device that failed.
  using Done = std::function<void(std::exception_ptr error)>;

  /// name: as logs have it.
  explicit Stream(std::string name);
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  const std::string& name() const { return name_; }

  /// Does `work` after all that was enqueued before it. Without native(), on a thread of the stream's own: it
  /// returns at once, and `work` must not throw nor wait for later work of the same stream. With native(),
  /// before it returns, one caller at a time, with the device current: `work` puts there what is to be done.
  virtual void enqueue(std::function<void()> work) = 0;
  /// Calls `done` when all that was enqueued before is done. `done` must not throw nor wait for the stream.
  void when_done(Done done);
  /// Keeps what `put` puts on a queue. With native(), `put` is called once, now, with a queue that keeps its
  /// work and does none of it; it must not wait, and what it throws is thrown. Without native(), `put` is
  /// called with nullptr in each launch, on the stream's thread, and must not throw.
  /// Throws the device's error where it cannot keep the work; nothing is enqueued then.
  virtual std::unique_ptr<StreamGraph> capture(std::function<void(void* native)> put) = 0;
  /// Throws the error of a device that has failed, as far as that is known by now. Does not wait.
  virtual void check() {}
  /// The queue as its maker's functions take it; nullptr where kernels are what the stream runs.
  virtual void* native() const { return nullptr; }

  /// For record(). It outlives what waits for it.
  virtual std::unique_ptr<StreamEvent> make_event() = 0;
  /// The event stands for all that was enqueued so far.
  void record(StreamEvent& event) KOLO_EXCLUDES(order_mutex_);
  /// Whether the work is done that the event, recorded on this stream, stands for. Does not wait. Throws the
  /// error of a device that failed.
  bool has_passed(StreamEvent& event);
  /// What is enqueued from now on is done behind what the events stand for, of this stream or others. What
  /// another wait has seen to, of this stream or of one that it has waited for, is not waited for again, nor
  /// is what was never recorded, nor what comes before `passed`, events that the host knows to have passed.
  void wait_for(std::span<StreamEvent* const> events, std::span<StreamEvent* const> passed = {})
      KOLO_EXCLUDES(order_mutex_);

 private:
  virtual void put_end(Done done) = 0;
  virtual void put_record(StreamEvent& event) = 0;
  virtual void put_wait(StreamEvent& event) = 0;
  virtual bool try_done(StreamEvent& event) = 0;
  void comes_behind(const StreamEvent& event) KOLO_REQUIRES(order_mutex_);

  const std::string name_;
  const std::uint64_t number_;  // from 1, of all streams of the process
  Mutex order_mutex_;           // records stand in the stream as they are counted
  std::map<std::uint64_t, std::uint64_t> behind_ KOLO_GUARDED_BY(order_mutex_);  // its own records, too
};

/// KOLO_CUDA_SYNC=1: the host waits after each piece of work of a GPU, so that an error comes from the call
/// that made it, and nothing overlaps. Throws InvalidArgumentError for anything but 0 and 1.
bool waits_after_each_piece();

/// A stream that is one thread of the host, named `thread` (cut to 15 letters). delay_seed: other than 0, it
/// falls behind by up to 0.2 ms now and then, as the seed has it.
/// Throws ResourceExhaustedError if the system gives no thread.
std::unique_ptr<Stream> make_thread_stream(const std::string& name, const std::string& thread,
                                           std::uint64_t delay_seed = 0);

}  // namespace kolo
