// What a schedule submits at the turn of a slot: a bucket that is reduced or gathered, or rows that are
// gathered.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/algorithms/communicator.h>
#include <kolo/collectives/algorithms/read_in_place.h>
#include <kolo/collectives/algorithms/text_exchange.h>
#include <kolo/collectives/progress/flight_recorder.h>
#include <kolo/collectives/schedule/spec.h>
#include <kolo/collectives/schedule/step_slots.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

/// The operation that the communication thread advances in every step. This rank's flags go out with the
/// slot's first message, or behind its data; where they come back void, the ranks tell each other why: all of
/// them, since all have seen the same flags. Keeps alive what its messages refer to.
class SlotWork : public Collective {
 public:
  /// label: what reports call it.
  SlotWork(int slot, std::shared_ptr<StepSlots> slots, std::shared_ptr<Communicator> communicator,
           std::string label);
  const std::string& label() const { return label_; }
  /// `text` with what it happened to in front: the step, the slot.
  std::string described(const std::string& text) const;
  virtual OperationDetails details() const = 0;
  /// Before start(), where it can be: as ReadInPlace has it.
  virtual void ask_to_read(bool /*asks*/) {}

  void start() final;
  Progress progress() final;
  const char* phase() const final;

 protected:
  Communicator& communicator() const { return *communicator_; }
  StepSlots& slots() const { return *slots_; }
  bool is_voting() const { return stage_ == Stage::voting; }

 private:
  /// Starts what brings the flags of all ranks; advances it; reads them when it has finished.
  virtual void start_voting(const StepFlags& own) = 0;
  virtual Progress advance_voting() = 0;
  virtual StepFlags votes() const = 0;
  /// What is left to do in a step that is not void. start_rest: false if nothing is.
  virtual bool start_rest() { return false; }
  virtual Progress advance_rest() { return Progress::finished; }
  /// It is over, void or not.
  virtual void finish() {}
  virtual const char* phase_of_work() const { return nullptr; }

  enum class Stage { skipped, voting, rest, asking };
  const int slot_;
  const std::shared_ptr<StepSlots> slots_;
  const std::shared_ptr<Communicator> communicator_;
  const std::string label_;
  TextExchange reasons_;
  Stage stage_ = Stage::skipped;
};

/// Memory of a bucket, in which the flags follow the elements: the gradients', or variables', and the
/// padding's.
struct BucketMemory {
  std::shared_ptr<Buffer> buffer;
  DType dtype = DType::f32;
  std::int64_t elements = 0;
  std::byte* host_flags = nullptr;  // where the buffer is a GPU's: what stands for the flags in it

  TypedBuffer data() const { return {buffer->data(), elements, dtype}; }
  TypedBuffer flags() const {
    std::byte* const behind = buffer->data() + elements * static_cast<std::int64_t>(size_of(dtype));
    return {host_flags != nullptr ? host_flags : behind, kStepFlags, dtype};
  }
};

/// What is done with a bucket, its flags included.
struct BucketExchange {
  std::shared_ptr<Collective> collective;
  const char* kind;  // "allreduce", …: what reports call it
};
/// tensors: the gradients, each with coefficients of its own where they are combined by Adasum.
BucketExchange reduced(Communicator& communicator, const BucketMemory& memory, const Reduction& reduction,
                       std::span<const TypedBuffer> tensors);
/// This rank's range alone is reduced, the others are undefined afterwards. counts: elements by rank.
BucketExchange scattered(Communicator& communicator, const BucketMemory& memory,
                         std::span<const std::int64_t> counts, const Reduction& reduction);
/// Each rank's range on all ranks.
BucketExchange gathered(Communicator& communicator, const BucketMemory& memory,
                        std::span<const std::int64_t> counts);

/// The flags come behind the data, so that what they let through is there.
class BucketWork final : public SlotWork {
 public:
  BucketWork(int slot, std::shared_ptr<StepSlots> slots, std::shared_ptr<Communicator> communicator,
             BucketMemory memory, BucketExchange exchange, std::string label);
  OperationDetails details() const override;
  bool abort(const std::exception_ptr& error) override;
  bool needs_comm_thread() const override { return !may_be_read(); }
  /// Whether ranks may read each other's elements where they lie; then as read_in_place.h has it.
  bool may_be_read() const { return in_place_ != nullptr; }
  void ask_to_read(bool asks) override {
    if (in_place_ != nullptr) in_place_->ask_to_read(asks);
  }
  std::span<const std::byte* const> elements_of_ranks() const {
    return in_place_ == nullptr ? std::span<const std::byte* const>() : in_place_->elements_of_ranks();
  }

 private:
  void start_voting(const StepFlags& own) override;
  Progress advance_voting() override;
  StepFlags votes() const override;
  bool start_rest() override;
  const char* phase_of_work() const override { return exchange_.collective->phase(); }

  const BucketMemory memory_;
  const BucketExchange exchange_;
  ReadInPlace* const in_place_;  // of exchange_; nullptr: it always reduces
};

/// The rows that each rank has a gradient for, to every rank. First how many rows each rank gives, and its
/// flags with that; then the values, divided by the number of ranks where an average is asked for; then the
/// indices. Where these are more bytes than the whole tensor: the sum of the whole tensors, then which rows
/// are in it.
class RowsWork final : public SlotWork {
 public:
  RowsWork(int slot, std::shared_ptr<StepSlots> slots, std::shared_ptr<Communicator> communicator,
           RowGatherSpec spec, bool average, std::string label);

  /// Before each submission; the tensors stay as they are until it is over, and the indices are rows of the
  /// tensor. A submission without gives no rows.
  void set_own(const Tensor& values, const Tensor& indices);
  /// Of all ranks in their order, or each once, ascending; once it has finished and the step is not void.
  const Tensor& values() const { return values_; }
  const Tensor& indices() const { return indices_; }
  OperationDetails details() const override;

 private:
  struct Header {
    std::int64_t rows;
    FlagNumbers flags;
  };

  void start_voting(const StepFlags& own) override;
  Progress advance_voting() override { return counting_->progress(); }
  StepFlags votes() const override;
  bool start_rest() override;
  Progress advance_rest() override;
  void finish() override { own_values_ = own_indices_ = Tensor(); }

  std::int64_t all_rows() const;
  std::int64_t row_bytes() const;
  bool whole_is_smaller() const;
  void start_values();
  void start_whole();
  void take_touched_rows();
  /// `all` with this rank's part filled in: an all-gather of it, started.
  void start_gather(const Tensor& all, const Tensor& own);

  enum class Part { values, indices, whole, touched };
  const RowGatherSpec spec_;
  const bool average_;
  std::vector<Header> headers_;
  std::shared_ptr<Collective> counting_;
  std::shared_ptr<Collective> gathering_;
  Tensor own_values_, own_indices_;  // no elements: none were given
  Tensor values_, indices_;
  Tensor whole_, touched_;  // u8: 1 for rows that some rank has
  std::shared_ptr<Collective> whole_sum_, touched_max_;
  Part part_ = Part::values;
};

}  // namespace kolo::detail
