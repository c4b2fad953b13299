// Runs one frame of a plan: nodes whose inputs are there, on the caller's thread and those of the inter-op
// pool.
#pragma once

#include <functional>

#include <kolo/core/base/thread_pool.h>
#include <kolo/core/runtime/plan.h>
#include <kolo/core/runtime/trace.h>

namespace kolo {

struct StepOptions {
  ThreadPool* pool = nullptr;  // helpers beside the caller's thread; null: the caller alone
  int intra_op_threads = 1;    // that one kernel may use
  StepTrace* trace = nullptr;  // filled in where it is given
  /// Called once after the first failure, on the caller's thread, when no synchronous kernel runs any more:
  /// it must see to it that asynchronous kernels that wait for other ranks come to an end. It may block.
  std::function<void(std::exception_ptr)> on_failure = {};
};

/// Returns when every node has run, or, after the first failure, when nothing is under way any more; then
/// throws the first error with the node's name, op and device added. Allocates nothing on the way unless it
/// traces.
void run_step(const Plan& plan, Frame& frame, const StepOptions& options);

}  // namespace kolo
