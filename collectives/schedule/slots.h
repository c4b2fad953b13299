// The turns of a training step: what a schedule reduces, gathers or shares, each a slot of its own kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <kolo/collectives/schedule/bucket.h>
#include <kolo/collectives/schedule/factors.h>
#include <kolo/collectives/schedule/step_slots.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

class DeviceReduction;
class Schedule;

namespace detail {
class BucketWork;
class FactorsWork;
class RowsWork;
class ScheduleCore;
}  // namespace detail

/// One turn of a step. Its schedule owns it, outlives it, and says when it may be submitted. Each slot is
/// submitted once in a step, by any thread. Done is called at once, or on another thread.
class Slot {
 public:
  using Done = detail::SlotDone;

  /// Its number among the turns. The ranks take their turns in this order. After Schedule::compare().
  int turn() const { return turn_; }

 protected:
  Slot(detail::ScheduleCore& core, int turn) : core_(&core), turn_(turn) {}
  void submit_at_turn(Done done, bool to_read);

  detail::ScheduleCore* core_;

 private:
  friend class Schedule;
  int turn_;
};

/// The variables of a bucket, of which each rank has updated a part: the parts of all ranks are gathered.
class ShardsSlot final : public Slot {
 public:
  /// Where this rank writes its part before submit(), and all ranks' parts stand after done. The variables
  /// stand in it as the gradients do in the bucket, element by element, in their own type. Of a bucket that
  /// is scattered and has that type it is the bucket's memory: what is written there takes the gradients'
  /// place.
  const std::shared_ptr<Buffer>& memory() const { return memory_; }
  /// Of the variable whose gradient stands at `offset` of the bucket's memory. In bytes.
  std::int64_t offset(std::int64_t of_gradient) const;
  void submit(Done done);

 private:
  friend class Schedule;
  ShardsSlot(detail::ScheduleCore& core, int turn, DType dtype, DType of_gradients,
             std::shared_ptr<Buffer> memory)
      : Slot(core, turn), dtype_(dtype), of_gradients_(of_gradients), memory_(std::move(memory)) {}

  DType dtype_, of_gradients_;
  std::shared_ptr<Buffer> memory_;
};

/// Gradients that are reduced at once.
class BucketSlot final : public Slot {
 public:
  /// The gradients, by their numbers in ScheduleSpec::gradients, and where they lie in memory().
  const Bucket& contents() const { return contents_; }
  /// The gradients and, behind them, a few elements of the schedule's own. Zero at first; what lies between
  /// the gradients must stay zero. Gradients are written here before submit() and read after done. Where
  /// Schedule::device() is a GPU it is that one's memory, which is there after compare(), and what its stream
  /// has been given before submit() counts as written.
  const std::shared_ptr<Buffer>& memory() const { return memory_; }
  /// Of a sharded schedule: whether only this rank's range (sharding.h) holds reduced elements after done.
  bool scatters() const { return scatters_; }
  /// The gathering of the bucket's variables. Throws InternalError where nothing of it is gathered.
  ShardsSlot& shards() const;
  void submit(Done done);

  /// Whether submit_to_read() may leave the bucket as it is: on CPUs whose ranks see each other's memory, few
  /// enough that to read all their gradients costs less than to reduce and read them. After compare().
  bool may_be_read() const { return may_be_read_; }
  /// For a step whose reduced gradients are read once and never fetched. The thread that called
  /// Schedule::begin() calls advance() or, before it waits for anything, hand_over(). Done when the gradients
  /// of all ranks can be read: where they lie, if all ranks have asked for that, else reduced.
  void submit_to_read(Done done);
  /// After it: the bucket's memory on each rank, in their order; none: the reduced gradients stand in this
  /// rank's.
  std::span<const std::byte* const> memory_of_ranks() const;

 private:
  friend class Schedule;
  BucketSlot(detail::ScheduleCore& core, int turn, Bucket contents)
      : Slot(core, turn), contents_(std::move(contents)) {}

  Bucket contents_;
  std::shared_ptr<Buffer> memory_;
  bool scatters_ = false, may_be_read_ = false;
  std::shared_ptr<detail::BucketWork> work_;  // on several ranks
  std::shared_ptr<DeviceReduction> on_gpu_;   // where a GPU reduces it
  std::unique_ptr<ShardsSlot> shards_;        // nullptr: nothing of it is gathered
};

/// Rows of a tensor: each rank gives those that it has, every rank gets all. On several ranks only.
class RowsSlot final : public Slot {
 public:
  /// This rank's rows, which stay as they are until done.
  void submit(const Tensor& values, const Tensor& indices, Done done);
  /// After done: the rows of all ranks in their order; values ÷ R where the reduction is an average.
  const Tensor& values() const;
  const Tensor& indices() const;

 private:
  friend class Schedule;
  using Slot::Slot;

  std::shared_ptr<detail::RowsWork> work_;
};

/// The factors of a gradient that all ranks make as a product, and may read of each other. A step submits
/// them, whatever this rank does with them.
class FactorsSlot final : public Slot {
 public:
  /// Memory for this rank's factors, the same in every step and of as many bytes in each call; nullptr where
  /// the others could not read it, or the gradient's bucket.
  std::shared_ptr<Buffer> memory(std::size_t bytes);
  /// Done when all ranks have come: own.memory is written, and they may read it until the step's end if all
  /// of them submit the same use and number of rows. The bucket must then be submitted to be read.
  void submit(const detail::OwnFactors& own, Done done);
  /// After it: own.memory of each rank, in their order; none: it stays this rank's own.
  std::span<const std::byte* const> memory_of_ranks() const;

 private:
  friend class Schedule;
  FactorsSlot(detail::ScheduleCore& core, const BucketSlot& bucket) : Slot(core, 0), bucket_(&bucket) {}

  const BucketSlot* bucket_;  // of its gradient
  std::shared_ptr<Buffer> memory_;
  std::shared_ptr<detail::FactorsWork> work_;
};

}  // namespace kolo
