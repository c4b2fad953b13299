// What becomes of the engine's operations, told in one call to all who keep it: the flight record, the
// timeline, the observers.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <vector>

#include <kolo/collectives/engine/operation.h>
#include <kolo/collectives/engine/tensor_queue.h>
#include <kolo/collectives/progress/comm_thread.h>

namespace kolo::detail {

/// Of the operations of one process set. On several ranks the communication thread, but for is_observed() and
/// submitted(): any thread. On one rank any thread.
class EngineTrace {
 public:
  /// thread: whose record and timeline these are; it outlives the trace. nullptr on one rank: observers
  /// alone.
  EngineTrace(int process_set, CommThread* thread) : process_set_(process_set), thread_(thread) {}

  static bool is_observed();
  void submitted(const EngineOperation& operation) const;
  /// They get their places in the flight record; only what that will keep is written there.
  void taken(std::span<const TensorQueue::Item> items) const;
  /// All ranks are ready, and it has its place in the order.
  void negotiated(const EngineOperation& operation);
  /// What was negotiated since the last call begins.
  void started();
  /// `collective`, which carries out these operations, with its start and its phases told to the observers;
  /// the collective itself where nobody observes. `collective` keeps them alive.
  std::shared_ptr<Collective> phases_of(std::shared_ptr<Collective> collective,
                                        const std::vector<EngineOperation*>& operations) const;
  void finished(std::span<EngineOperation* const> operations, const std::exception_ptr& error);

 private:
  void record(EngineOperation& operation) const;

  const int process_set_;
  CommThread* const thread_;
  std::vector<FlightRecorder::Sequence> started_, ended_;  // at once, and to be recorded
};

}  // namespace kolo::detail
