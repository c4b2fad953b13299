// The end of a step in which ranks have read each other's buckets where they lie.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include <kolo/collectives/algorithms/communicator.h>
#include <kolo/collectives/schedule/step_slots.h>
#include <kolo/core/base/mutex.h>

namespace kolo::detail {

/// A rank may write its buckets again when all ranks have come to the end of the step in which they read
/// them. Nobody waits there: the next step begins, and what would write waits.
class StepEnd final : public Collective {
 public:
  explicit StepEnd(std::shared_ptr<Communicator> communicator)
      : communicator_(std::move(communicator)), arrival_(communicator_->barrier()) {}

  /// Before it is submitted: this rank has read, others may be reading.
  void close() KOLO_EXCLUDES(mutex_);
  void start() override { arrival_->start(); }
  Progress progress() override { return arrival_->progress(); }
  bool needs_comm_thread() const override { return arrival_->needs_comm_thread(); }
  /// All have read, or nobody will any more because of `error`.
  void finish(const std::exception_ptr& error) KOLO_EXCLUDES(mutex_);

  /// Calls `done` when this rank may write its buckets: at once, or in finish(). One caller at a time. Never
  /// again after an error: who reads may only be slow.
  void when_open(SlotDone done) KOLO_EXCLUDES(mutex_);
  /// This rank's step has failed: whoever waits in when_open() is told, and still nothing may be written.
  void break_off(const std::exception_ptr& error) KOLO_EXCLUDES(mutex_);
  /// Whether all have read for certain. False when the deadline passes first, or after an error.
  bool wait_until(std::chrono::steady_clock::time_point deadline) const KOLO_EXCLUDES(mutex_);

 private:
  const std::shared_ptr<Communicator> communicator_;
  const std::shared_ptr<Collective> arrival_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool is_open_ KOLO_GUARDED_BY(mutex_) = true;
  SlotDone waiting_ KOLO_GUARDED_BY(mutex_);
  std::exception_ptr error_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
