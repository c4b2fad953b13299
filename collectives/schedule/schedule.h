// The compiled schedule of one DistributedOptimizer: its gradients lie in buckets, which are reduced in a
// fixed order while the backward pass goes on.
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/schedule/factors.h>
#include <kolo/collectives/schedule/spec.h>
#include <kolo/collectives/schedule/step_slots.h>
#include <kolo/core/runtime/step_vote.h>
#include <kolo/core/tensor/allocator.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

/// The limits that init() found, the defaults without it.
BucketLimits default_bucket_limits();
/// Memory in which the ranks of this node reduce in place, where init() found that they can; else ordinary
/// memory. It outlives all tensors.
Allocator& bucket_allocator();

/// One step at a time: begin, then submit for each slot (a bucket, a gather, the factors of a gradient of
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

  const std::vector<Bucket>& buckets() const { return buckets_; }
  int num_gathers() const { return static_cast<int>(spec_.gathers.size()); }
  /// What to submit a bucket, a gather by. After compare().
  int slot_of_bucket(int bucket) const;
  int slot_of_gather(int gather) const {
    return static_cast<int>(buckets_.size() + factored_.size()) + gather;
  }
  /// Before its submit(): this rank's rows, which stay as they are until done. On several ranks only.
  void give_rows(int gather, const Tensor& values, const Tensor& indices);
  /// After done: the rows of all ranks in their order; values ÷ R where the reduction is an average.
  std::pair<Tensor, Tensor> gathered_rows(int gather) const;
  /// The gradients of a bucket and, behind them, a few elements of the schedule's own. Zero at first; what
  /// lies between the gradients must stay zero. Gradients are written here before submit() and read after
  /// done. Where device() is a GPU it is that one's memory, which is there after compare(), and what its
  /// stream has been given before submit() counts as written.
  const std::shared_ptr<Buffer>& memory(int bucket) const { return memory_.at(bucket); }
  /// The GPU in whose memory the buckets lie, and which reduces them with those of the other ranks; nullptr:
  /// they lie in the host's. The same kind on all ranks. Known after compare().
  Device* device() const;
  int bucket_of(int gradient) const { return place_.at(gradient).first; }
  /// In bytes, within the bucket's memory.
  std::int64_t offset(int gradient) const { return place_.at(gradient).second; }

  /// Of a sharded schedule: whether only this rank's range (sharding.h) of the bucket holds reduced elements
  /// after done.
  bool scatters(int bucket) const;
  /// What to submit the gathering of a bucket's variables by: each rank's range of gather_memory, written
  /// before, is on all ranks after done. Throws InternalError where nothing of the bucket is gathered.
  int slot_of_shards(int bucket) const;
  /// The variables stand in it as the gradients do in the bucket, element by element, in their own type. Of a
  /// bucket that is scattered and has that type it is the bucket's memory: what is written there takes the
  /// gradients' place.
  const std::shared_ptr<Buffer>& gather_memory(int bucket) const;
  /// In bytes, within gather_memory.
  std::int64_t offset_of_gathered(int gradient) const;

  std::vector<int> ranks() const override;
  /// Collective, once, before the first step; a second call does nothing.
  void compare() override;

  /// The number that errors name: of the next step, or of the one that has begun. Left alone, steps count
  /// from 1.
  void set_step(std::int64_t step) override;
  /// Throws the group's error if there was one, FailedPreconditionError before compare().
  void begin() override;
  void submit(int slot, Done done);

  /// Whether submit_to_read() may leave the bucket as it is: on CPUs whose ranks see each other's memory, few
  /// enough that to read all their gradients costs less than to reduce and read them. After compare().
  bool may_be_read(int bucket) const;
  /// For a step whose reduced gradients are read once and never fetched. The thread that called begin() calls
  /// advance() or, before it waits for anything, hand_over(). Done when the gradients of all ranks
  /// can be read: where they lie, if all ranks have asked for that, else reduced.
  void submit_to_read(int bucket, Done done);
  /// After it: the bucket's memory on each rank, in their order; none: the reduced gradients stand in this
  /// rank's.
  std::span<const std::byte* const> memory_of_ranks(int bucket) const;
  /// What their sum is divided by.
  int divisor() const;

  /// Whether all ranks make the gradient as a product and may read each other's factors of it; then a step
  /// submits them, whatever this rank does with them. After compare().
  bool may_share_factors(int gradient) const;
  /// Where submit_factors() stands among the slots.
  int slot_of_factors(int gradient) const;
  /// Memory for this rank's factors of the gradient, the same in every step and of as many bytes in each
  /// call; nullptr where the others could not read it, or the gradient's bucket.
  std::shared_ptr<Buffer> factors_memory(int gradient, std::size_t bytes);
  /// Whether it is such memory.
  bool is_factors_memory(const std::shared_ptr<Buffer>& memory) const;
  /// Done when all ranks have come: own.memory is written, and they may read it until the step's end if all
  /// of them submit the same use and number of rows. The bucket must then be submitted to be read.
  void submit_factors(int gradient, const detail::OwnFactors& own, Done done);
  /// After it: own.memory of each rank, in their order; none: it stays this rank's own.
  std::span<const std::byte* const> factors_of_ranks(int gradient) const;

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
  class Core;
  // The variables of a bucket, whose parts the ranks gather.
  struct GatheredBucket {
    int bucket = 0;
    DType dtype = DType::f32;
    std::shared_ptr<Buffer> memory;
  };

  bool may_lie_on_gpu() const;
  void allocate(Allocator& allocator);
  void plan_shards(Allocator& allocator);
  void join_gpus();
  void make_memory();
  const GatheredBucket& gathered_bucket(int bucket) const;
  void agree_on_factors();
  void order_slots();
  std::size_t place_of_factors(int gradient) const;
  void make_works();
  void end_data();
  void end_data_in_step(const std::string& text);
  void fail(const std::string& text);
  void join_empty_handed();
  std::vector<TypedBuffer> tensors_of(int bucket) const;

  ScheduleSpec spec_;
  std::vector<Bucket> buckets_;
  std::vector<std::pair<int, std::int64_t>> place_;  // of each gradient: bucket, offset
  std::vector<std::shared_ptr<Buffer>> memory_;
  std::vector<bool> scattered_;                            // by bucket
  std::vector<bool> readable_;                             // by bucket
  std::vector<int> factored_;                              // gradients whose factors may be shared, ascending
  std::map<int, std::shared_ptr<Buffer>> factors_memory_;  // by gradient
  std::vector<GatheredBucket> gathered_;
  std::unique_ptr<Core> core_;
};

}  // namespace kolo
