// What the engine tells of its operations, for recorders and timelines, and what it counts.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>
#include <vector>

#include <kolo/core/tensor/dtype.h>
#include <kolo/core/tensor/shape.h>

namespace kolo {

/// What is known of an eager operation. Borrowed: valid during the call that passes it.
struct EngineEvent {
  std::string_view name;
  std::string_view kind;     // "allreduce", "grouped_allreduce", …
  DType dtype = DType::f32;  // of the first tensor
  Shape shape = {};          // of the first tensor
  std::int64_t bytes = 0;    // of all tensors
  int process_set = 0;
  std::int64_t sequence =
      -1;  // in the agreed order of its set, the same on all ranks; −1 before `negotiated`
};

/// Each operation passes submitted (on the caller's thread), negotiated, started, any number of phases and
/// finished (on the communication thread); one that fails goes from submitted to finished, one that throws at
/// the call may end with submitted. All functions must be quick and must not throw.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  virtual void submitted(const EngineEvent& event) = 0;
  /// All ranks are ready, and the operation has its place in the order.
  virtual void negotiated(const EngineEvent& event) = 0;
  virtual void started(const EngineEvent& event) = 0;
  /// What of it goes on now: "pack", "reduce", "unpack".
  virtual void phase(const EngineEvent& event, std::string_view phase) = 0;
  /// error: nullptr if it went well.
  virtual void finished(const EngineEvent& event, const std::exception_ptr& error) = 0;
};

/// Tells `observer`, too, of all operations that are submitted from now on. It lives until shutdown() or a
/// later call with nullptr, which removes all observers. Any thread.
void observe_engine(std::shared_ptr<EngineObserver> observer);

/// What this rank's engine has done for a process set since init().
struct EngineStatistics {
  std::int64_t negotiation_messages = 0, negotiation_bytes = 0;  // sent
  std::int64_t cache_hits = 0, cache_misses = 0;     // submissions that were, or were not, one bit
  std::int64_t operations = 0;                       // executed
  std::int64_t reductions = 0, reduced_tensors = 0;  // allreduces, and the tensors in them
  // In use now. kolo-bench changes them on all ranks at the same place in the order of operations: the last
  // time before operation tuned_at, counted from 0; −1: not yet.
  std::int64_t fusion_bytes = 0;
  double cycle_ms = 0;
  std::int64_t tuned_at = -1;
};

}  // namespace kolo
