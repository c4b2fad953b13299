// Runs one frame of a plan: nodes whose inputs are there, on the caller's thread and those of the inter-op
// pool.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>

#include <kolo/core/base/thread_pool.h>
#include <kolo/core/runtime/cancellation.h>
#include <kolo/core/runtime/plan.h>
#include <kolo/core/runtime/step_vote.h>
#include <kolo/core/runtime/trace.h>

namespace kolo {

struct StepOptions {
  ThreadPool* pool = nullptr;  // helpers beside the caller's thread; null: the caller alone
  int intra_op_threads = 1;    // that one kernel may use
  StepTrace* trace = nullptr;  // filled in where it is given
  /// When it passes, the step is cancelled: DeadlineExceededError `Timed out waiting for notification`.
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  StepCancellation* cancellation = nullptr;
  /// Where it is given, counts the nodes that have not finished, for who looks at the step meanwhile.
  std::atomic<int>* nodes_left = nullptr;
  /// Likewise the threads that run nodes, or look for some, rather than sleep until one is ready.
  std::atomic<int>* busy_threads = nullptr;
  /// Of the ranks that share the step; the caller looks after what it waits for while it has nothing to run.
  const StepVotes* votes = nullptr;
  /// Called once after the first failure, on the caller's thread, when no synchronous kernel runs any more:
  /// it must see to it that asynchronous kernels that wait for other ranks come to an end. It may block.
  std::function<void(std::exception_ptr)> on_failure = {};
};

/// Returns when every node has run, or, after the first failure, when nothing is under way any more; then
/// throws the first error with the node's name, op and device added. A kernel that runs is not interrupted;
/// asynchronous ones that are Cancellable are asked to end. What fails in a stream fails the step as soon as
/// it is known there: at once, or, of a device that fails by itself, within a second. Allocates nothing on
/// the way unless it traces.
///
/// A step that a kernel runs, as a loop does for each iteration, is part of the kernel's own step: it has its
/// deadline, and is cancelled when that fails.
///
/// Alone, the caller takes nodes in the plan's order. With a pool, a node that becomes ready runs on the
/// thread that made it so if it is inexpensive; an expensive one goes to whoever is free, but for the last
/// one where that thread has nothing else to do.
void run_step(const Plan& plan, Frame& frame, const StepOptions& options);

}  // namespace kolo
