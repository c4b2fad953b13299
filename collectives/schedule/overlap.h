// How much of a step's reductions is hidden behind its computing.
#pragma once

#include <chrono>

#include <kolo/core/runtime/trace.h>

namespace kolo {

/// How much of a step's reductions ran while kernels computed.
struct ReductionOverlap {
  std::chrono::duration<double> reducing{};  // the sum of the reductions, each from its start to its end
  std::chrono::duration<double> waiting{};   // buckets were under way and no kernel ran

  /// 1 − waiting ÷ reducing, at least 0; 1 for a step without reductions.
  double hidden_share() const;
};

/// Of one step of this rank. A reduction lasts until the last rank has joined it, so a rank that comes early
/// waits longer. A bucket is under way from the end of its last gradient on, before its reduction begins.
/// Less than 5 µs between two kernels are the executor's own and no wait.
ReductionOverlap reduction_overlap(const StepTrace& trace);

}  // namespace kolo
