// The compiled schedule of one DistributedOptimizer: its gradients lie in buckets, which are reduced in a
// fixed order while the backward pass goes on.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/schedule/slots.h>
#include <kolo/collectives/schedule/spec.h>
#include <kolo/collectives/schedule/step_slots.h>
#include <kolo/core/runtime/step_vote.h>
#include <kolo/core/tensor/allocator.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

namespace detail {
struct BucketExchange;
struct BucketMemory;
}  // namespace detail

/// Those of them that are 0 as init() found them, by default without it. Throws InvalidArgumentError
/// `<who>: …` for a negative one.
BucketLimits bucket_limits(std::string_view who, std::int64_t first_bytes, std::int64_t bytes);
/// Memory in which the ranks of this node reduce in place, where init() found that they can; else ordinary
/// memory. It outlives all tensors.
Allocator& bucket_allocator();

/// Where a gradient lies.
struct GradientPlace {
  BucketSlot* bucket = nullptr;
  std::int64_t offset = 0;         // in bytes, within the bucket's memory
  FactorsSlot* factors = nullptr;  // after compare(): where all ranks may share the gradient's factors
};

/// One step at a time: begin, then submit each slot (slots.h: a bucket, rows, the factors of a gradient of
/// which they may be shared) in any order, from any thread. Slots have their turn in the order of their
/// numbers, so a step that leaves one out does not end; buckets are reduced in the order 0, 1, 2, … . The
/// flags of StepVote travel as elements behind the gradients of each bucket, so a step sends no message
/// beyond its reductions. A step is void as soon as a bucket carries an end of data or a failure: that bucket
/// and all later ones end in an error on every rank. An end of data comes with the first bucket, so nothing
/// of its step is applied anywhere. A failure comes with the first bucket that the failing rank has not
/// begun: ranks may have applied earlier ones, and the group ends with the error. A step in which a rank
/// submits nothing at all, on no rank then, does not count: gradients may be summed for several steps before
/// they are reduced. One rank: no traffic; submit() is done at once.
class Schedule final : public StepVote {
 public:
  using Done = detail::SlotDone;
  using Timing = detail::SlotTiming;

  /// Throws InvalidArgumentError for a gradient that is not floating, for an op other than sum, average and
  /// adasum, and for a process set that was removed or that this rank is not in. A set that is removed later
  /// changes nothing.
  explicit Schedule(ScheduleSpec spec, Allocator& allocator = bucket_allocator());
  ~Schedule() override;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  /// In the order in which they are reduced.
  std::span<BucketSlot> buckets() { return buckets_; }
  std::span<const BucketSlot> buckets() const { return buckets_; }
  /// One for each of ScheduleSpec::gathers.
  std::span<RowsSlot> rows() { return rows_; }
  /// One for each of ScheduleSpec::gradients.
  std::span<const GradientPlace> gradients() const { return gradients_; }
  /// The GPU in whose memory the buckets lie, and which reduces them with those of the other ranks; nullptr:
  /// they lie in the host's. The same kind on all ranks. Known after compare().
  Device* device() const;
  /// What the sum of the ranks' gradients is divided by.
  int divisor() const;
  /// Whether it is memory of a bucket or of factors, which other ranks may read.
  bool holds(const std::shared_ptr<Buffer>& memory) const;

  std::vector<int> ranks() const override;
  /// Collective, once, before the first step; a second call does nothing.
  void compare() override;

  /// The number that errors name: of the next step, or of the one that has begun. Left alone, steps count
  /// from 1.
  void set_step(std::int64_t step) override;
  /// Throws the group's error if there was one, FailedPreconditionError before compare().
  void begin() override;
  /// Calls `done` when no rank reads this rank's buckets and factors any more, so that they may be written:
  /// at once, or on another thread. Once a step.
  void when_writable(Done done);
  Waits advance() override;
  void hand_over() override;
  /// A step need not gather what it has reduced. The buckets of a step that failed on this rank are what
  /// leave() contributes.
  void end() override;

  void cast(StepFlag flag) override;
  void cast_sum(std::uint16_t sum) override;
  std::vector<std::string> names() const override;
  std::vector<std::string> exchange(const std::string& text) override;
  /// Kernels of the step may still run after a failure; who submits a bucket afterwards gets an error. Waits
  /// at most 7 s, on the communication thread not at all; whoever then still waits for a bucket gets an
  /// error. A failure is told to nobody on one rank, and after an error that all ranks have: of the step (its
  /// end of data too) or of the group. At the end of the data gradients of the step must not be written any
  /// more.
  void leave(StepFlag flag, const std::string& text) override;
  StepFlags take_outcome() override;

  /// When each bucket of the last step was reduced.
  std::vector<Timing> last_step_timings() const;
  void append_trace(StepTrace& trace) const override;
  /// Exchanges beyond the buckets' own reductions since compare(): none in steady state.
  std::int64_t extra_exchanges() const;

 private:
  bool may_lie_on_gpu() const;
  void allocate(Allocator& allocator);
  void plan_shards(Allocator& allocator);
  void join_gpus();
  void make_memory();
  void agree_on_factors();
  void order_turns();
  void make_works();
  void make_factors_works();
  detail::BucketExchange make_exchange(BucketSlot& bucket, detail::BucketMemory& memory);
  void end_data();
  void end_data_in_step(const std::string& text);
  void fail(const std::string& text);
  void join_empty_handed();
  std::vector<TypedBuffer> tensors_of(const BucketSlot& bucket) const;

  ScheduleSpec spec_;
  std::unique_ptr<detail::ScheduleCore> core_;
  std::vector<BucketSlot> buckets_;
  std::vector<RowsSlot> rows_;
  std::vector<FactorsSlot> factors_;  // in the order of their gradients
  std::vector<GradientPlace> gradients_;
};

}  // namespace kolo
