// Gradients of a loop of one's own in buckets, and how much of their reduction is hidden.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/reduce/reduction.h>
#include <kolo/core/runtime/trace.h>
#include <kolo/core/tensor/dtype.h>

namespace kolo {

// Averages the gradients of somebody else's training loop over the ranks while its backward pass goes on.
// Needs nothing of kolo's graphs: memory, names and two calls.

/// Elements that belong to the caller, and what messages call them.
struct NamedBuffer {
  std::string name;
  void* elements = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::f32;
};

/// How the backward pass of the caller makes the gradients, roughly: buckets leave in that order.
enum class GradientOrder {
  reversed,  // the last of the list first: a list of parameters as the forward pass uses them
  listed,
};

/// How GradientBuckets reduces. All ranks give the same.
struct GradientBucketsOptions {
  ReduceOp op = ReduceOp::average;  // or sum
  GradientOrder order = GradientOrder::reversed;
  std::int64_t first_bucket_bytes = 0;  // upper bound of the first bucket; 0: KOLO_FIRST_BUCKET_BYTES
  std::int64_t bucket_bytes = 0;        // of the others; 0: KOLO_BUCKET_BYTES
};

/// A fixed list of gradients in buckets (collectives/schedule/bucket.h). A bucket is reduced as soon as its
/// last gradient is ready, on kolo's communication thread:
///
///   GradientBuckets buckets({{"weight", nullptr, 1000}, {"bias", nullptr, 10}});
///   // once: let the framework write its gradients to buckets.memory(0) and buckets.memory(1)
///   // in each step, as the backward pass makes them, from any thread: buckets.ready(1); buckets.ready(0);
///   buckets.wait();  // memory(i) holds the average over the ranks
///
/// A step goes from the first ready() to the end of wait(). All ranks take the same number of steps. What
/// wait() throws of the other ranks is the same on all ranks; after an end of data the next step may begin,
/// after any other error these buckets are of no use any more. One rank: gradients stay as they are.
class GradientBuckets {
 public:
  /// Collective: all ranks make their buckets in the same order, and compare their lists once.
  /// elements == nullptr: the gradient lives inside its bucket, see memory(), and is never copied. Otherwise
  /// it is copied there by ready() and back by wait(); the caller's memory must live as long.
  /// Throws InvalidArgumentError for a type that is not floating, a negative count or limit, and an op other
  /// than sum and average; FailedPreconditionError, on every rank, `Ranks disagree on the training step: …`
  /// where lists, op or limits differ. Gradients count from 0 in the order of reduction there.
  explicit GradientBuckets(std::vector<NamedBuffer> gradients, GradientBucketsOptions options = {});
  /// In the middle of a step it tells the other ranks that this one has failed, for at most 7 s.
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  int gradients() const;
  /// How many reductions a step makes.
  int buckets() const;
  /// The gradient's place in its bucket: `count` elements at a multiple of 64 bytes, zero at first. To be
  /// written before ready() and after wait() only.
  void* memory(int gradient) const;

  /// The gradient is written. Once in a step for each, in any order, from any thread. Copies, unless the
  /// gradient lives in its bucket; never waits for other ranks. Throws InvalidArgumentError for an index
  /// outside the list and for a gradient that is ready already; what goes wrong between the ranks is thrown
  /// by wait().
  void ready(int gradient);
  /// The same for a gradient that the framework has put elsewhere in this step: copied from `elements` and,
  /// by wait(), back to there.
  void ready(int gradient, void* elements);
  /// This rank has no such gradient in this step and contributes zeros.
  void absent(int gradient);

  /// Waits until every bucket is reduced; the gradients then hold the result. One thread, after all calls of
  /// ready() have begun.
  /// Throws FailedPreconditionError that names the gradients that are not ready; the other ranks then end in
  /// AbortedError with the same text, within the wait() they are in. OutOfRangeError where a rank has called
  /// end_of_data(): the step is void, the gradients hold anything. AbortedError, DeadlineExceededError,
  /// UnavailableError: another rank failed, did not come or is gone.
  void wait();
  /// Waits at most until then: true if wait() would not wait any more, be it to throw. The same thread's.
  bool wait_until(std::chrono::steady_clock::time_point deadline);

  /// This rank has no data for the next step: instead of it, and while the others are in it. Returns when
  /// that step is void everywhere. Throws what wait() throws.
  void end_of_data();

 private:
  class Steps;
  std::unique_ptr<Steps> steps_;
};

/// Overwrites the elements with root's: parameters before the first step. Collective. Throws
/// FailedPreconditionError, on every rank, `Ranks disagree on the parameters: …` where names, counts or types
/// differ, InvalidArgumentError `root rank <k> is outside the process set of <R> ranks`.
void broadcast_parameters(std::span<const NamedBuffer> parameters, int root = 0);

// How much of a step's reductions is hidden behind its computing.

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
