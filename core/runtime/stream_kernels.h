// Kernels of devices that run ahead of the host: their nodes are done, for the executor, once they stand in
// the device's stream, whose order sees to the rest.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/device/stream.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/numbered_kernel.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// The first error of what a run of one frame has put on streams. Nobody waited for it: what comes behind it
/// on the stream, or back from it, asks here; the run itself listens. Any thread.
class StreamErrors {
 public:
  void note(std::exception_ptr error) KOLO_EXCLUDES(mutex_);
  /// `check` throws what its kernel has found so far, and forgets it. Of several the first watched is asked
  /// first.
  void watch(std::function<void()> check) KOLO_EXCLUDES(mutex_);
  /// What has been noted.
  std::exception_ptr noted() const KOLO_EXCLUDES(mutex_);
  /// That, or what those who are watched have found.
  std::exception_ptr first() KOLO_EXCLUDES(mutex_);
  /// The same, at the end of a run: forgotten.
  std::exception_ptr take() KOLO_EXCLUDES(mutex_);

 private:
  friend class StreamErrorListener;
  void ask() KOLO_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::function<void(std::exception_ptr)> told_ KOLO_GUARDED_BY(mutex_);  // of what is noted
  std::exception_ptr error_ KOLO_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> checks_ KOLO_GUARDED_BY(mutex_);
};

/// Tells of an error as soon as it is noted, while it lives.
class StreamErrorListener {
 public:
  /// errors: null where no stream is used. told: called at most once, under a lock; does not wait.
  StreamErrorListener(StreamErrors* errors, std::function<void(std::exception_ptr)> told);
  ~StreamErrorListener();
  StreamErrorListener(const StreamErrorListener&) = delete;
  StreamErrorListener& operator=(const StreamErrorListener&) = delete;

 private:
  StreamErrors* errors_;
};

/// What a kernel on a stream needs of its plan, which outlives it.
struct StreamPlace {
  Stream& stream;
  const StepNode& node;
  int threads;  // that the kernel may use for one call, where it runs on the stream's own thread
  std::shared_ptr<StreamErrors> errors;  // of the frame
};

struct NodeLog;

/// What both kinds of kernels on streams have in common.
class StreamKernel {
 public:
  explicit StreamKernel(StreamPlace place) : place_(std::move(place)) {}
  virtual ~StreamKernel() = default;
  Stream& stream() const { return place_.stream; }
  /// In each run behind `other`, of the same frame and another stream, which is put there before this one.
  void comes_behind(StreamKernel& other);
  /// Likewise behind a fence, which is over when this one is put there: what that has waited for needs no
  /// other wait.
  void comes_behind_fence(Kernel& fence);
  void set_log(NodeLog log);

  // For who gives its work to the stream together with that of others (segments.h).
  const std::vector<StreamEvent*>& before() const { return before_; }
  const std::vector<StreamEvent*>& passed() const { return passed_; }
  const std::string& node_name() const { return place_.node.name; }
  /// Whether an error of the frame's is known: then nothing more is put there.
  bool has_failed() const { return place_.errors->noted() != nullptr; }
  /// The work alone, without waits and records. native: the queue that it is put on; nullptr: the caller is
  /// the stream's own thread, and nothing is thrown.
  virtual void put(KernelContext& context, void* native);
  /// The kernel, where its work on a native stream can only be kept with its number apart; else null.
  virtual NumberedKernel* numbered() { return nullptr; }
  /// The work of such a kernel alone, by a number that does not lie apart.
  virtual void put_with(KernelContext& context, void* native, std::uint64_t number);
  void record_end();
  void log_begin() const;
  void log_use(const KernelContext& context) const;

 protected:
  StreamPlace place_;
  std::vector<StreamEvent*> before_, passed_;
  std::unique_ptr<StreamEvent> end_;  // where another comes behind it
  std::shared_ptr<const NodeLog> log_;
};
/// nullptr: the host runs it.
StreamKernel* stream_kernel(Kernel* kernel);

/// Puts the kernel on the stream and is done. After an error of the frame's it does nothing.
std::unique_ptr<Kernel> on_stream(std::unique_ptr<Kernel> kernel, StreamPlace place);
/// When what on_stream has made ran last; nothing for other kernels. Of a native stream: when it was put
/// there.
struct KernelTimes {
  std::chrono::steady_clock::time_point start, end;
  bool only_put_there = false;
};
std::optional<KernelTimes> times_on_stream(const Kernel& kernel);

/// True where the host needs what the kernel finds out before it goes on (shapes, what happens next, that a
/// variable has a value) or shares memory with it, so that a stream without native() must be waited for.
bool must_be_waited_for(const StepGraph& graph, const StepNode& node);
/// As asynchronous to the executor as a reduction is: the node is done when its stream has run it.
std::unique_ptr<Kernel> waited_on_stream(std::unique_ptr<Kernel> kernel, StreamPlace place);

/// Of an AsyncKernel that waits for `fence`: it ends with the error of what went before.
std::unique_ptr<Kernel> told_of_errors(std::unique_ptr<Kernel> kernel, std::shared_ptr<StreamErrors> errors,
                                       Stream& fence);
/// Of an AsyncKernel that sends what the stream, a native one, has been given so far: it ends with the error
/// of what went before, at once where that is known when it starts.
std::unique_ptr<Kernel> sent_from_stream(std::unique_ptr<Kernel> kernel, StreamPlace place);

/// How the runs of one frame wait for their streams. One run at a time.
class StreamEnds {
 public:
  /// streams: the first waits for the others, so that there is one end. is_joined: by stream; false where the
  /// nodes of the first wait for all that the stream is given.
  explicit StreamEnds(std::vector<Stream*> streams, std::vector<bool> is_joined = {});
  /// Returns when the streams have done what they were given so far, or when `gives_up`, asked now and then,
  /// says so: then false. is_whole: all nodes of the run were put into their streams; of one that has failed
  /// those may be missing that would have waited, so all streams are joined. The caller looks for
  /// KOLO_GPU_SPIN_US microseconds (10,000) and sleeps then. Throws the error of a device that failed.
  bool wait(const std::function<bool()>& gives_up, bool is_whole = true);

 private:
  void join(bool all);
  std::optional<bool> look(const std::function<bool()>& gives_up) const;

  const std::vector<Stream*> streams_;
  std::vector<std::unique_ptr<StreamEvent>> ends_;  // by stream
  std::vector<bool> is_joined_;
  std::vector<StreamEvent*> others_, joined_;  // all but the first stream's; those that are always joined
};

}  // namespace kolo
