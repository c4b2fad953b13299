// One run of a part: what comes from other tasks, what goes to them, and the step between.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/worker/part.h>
#include <kolo/core/cluster/worker/peers.h>
#include <kolo/core/cluster/worker/step_exchange.h>
#include <kolo/core/runtime/executor.h>

namespace kolo::detail {

/// run: once, one thread. append_waits: any thread meanwhile.
class PartRun {
 public:
  /// receiver: this task. peers: null where there are no other tasks.
  PartRun(std::shared_ptr<Part> part, std::shared_ptr<StepExchange> exchange, Peers* peers,
          std::string receiver)
      : part_(std::move(part)),
        exchange_(std::move(exchange)),
        peers_(peers),
        receiver_(std::move(receiver)) {}

  /// options: threads, deadline and cancellation, which is there. Throws what fails first; nothing is under
  /// way then.
  PartResult run(const RunPartRequest& request, StepOptions options) KOLO_EXCLUDES(mutex_);

  /// What its nodes wait for. workers: see Cancellable::waits_for.
  void append_waits(const std::vector<std::string>& workers, const TaskStatus::Wait& like,
                    std::vector<TaskStatus::Wait>& waits) KOLO_EXCLUDES(mutex_);

 private:
  class Incoming;
  class FrameInUse;

  void check_feeds(const RunPartRequest& request) const;
  void bind(Frame& frame) const;
  void open_streams(const RunPartRequest& request, Frame& frame, StepCancellation& cancellation);
  void close_streams(Frame& frame, bool failed);
  std::vector<Tensor> take_fetches(Frame& frame) const;
  void show(Frame* frame) KOLO_EXCLUDES(mutex_);

  const std::shared_ptr<Part> part_;
  const std::shared_ptr<StepExchange> exchange_;
  Peers* const peers_;
  const std::string receiver_;
  std::vector<std::shared_ptr<Incoming>> incoming_;
  std::vector<std::shared_ptr<Call>> calls_;
  std::atomic<int> nodes_left_{0}, busy_threads_{0};
  Mutex mutex_;
  Frame* frame_ KOLO_GUARDED_BY(mutex_) = nullptr;  // while it runs
};

}  // namespace kolo::detail
