// One bucket of a schedule, reduced or gathered, as the operation that the communication thread advances in
// every step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <kolo/collectives/algorithms/communicator.h>
#include <kolo/collectives/algorithms/text_exchange.h>
#include <kolo/collectives/progress/flight_recorder.h>
#include <kolo/collectives/schedule/scheduled_operation.h>
#include <kolo/collectives/schedule/step_state.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo::detail {

/// Memory of a bucket, in which the flags follow the elements: the gradients', or variables', and the
/// padding's.
struct BucketMemory {
  std::shared_ptr<Buffer> buffer;
  DType dtype = DType::f32;
  std::int64_t elements = 0;

  TypedBuffer data() const { return {buffer->data(), elements, dtype}; }
  TypedBuffer flags() const {
    return {buffer->data() + elements * static_cast<std::int64_t>(size_of(dtype)), kFlagElements, dtype};
  }
};

/// What is done with a bucket, its flags included.
struct BucketWork {
  std::shared_ptr<Collective> collective;
  const char* kind;  // "allreduce", …: what reports call it
};
/// tensors: the gradients, each with coefficients of its own where they are combined by Adasum.
BucketWork reduced(Communicator& communicator, const BucketMemory& memory, const Reduction& reduction,
                   std::span<const TypedBuffer> tensors);
/// This rank's range alone is reduced, the others are undefined afterwards. counts: elements by rank.
BucketWork scattered(Communicator& communicator, const BucketMemory& memory,
                     std::span<const std::int64_t> counts, const Reduction& reduction);
/// Each rank's range on all ranks.
BucketWork gathered(Communicator& communicator, const BucketMemory& memory,
                    std::span<const std::int64_t> counts);

/// Sends this rank's flags with the bucket. Where it comes back void, the ranks tell each other why: all of
/// them, since all have seen the same flags. Keeps alive what its messages refer to.
class BucketReduction final : public ScheduledOperation {
 public:
  BucketReduction(int slot, std::shared_ptr<StepState> state, std::shared_ptr<Communicator> communicator,
                  BucketMemory memory, BucketWork work, std::string label);

  OperationDetails details() const override;
  StepState& state() { return *state_; }

  void start() override;
  Progress progress() override;
  const char* phase() const override;

 private:
  enum class Stage { skipped, working, asking };

  const int slot_;
  const std::shared_ptr<StepState> state_;
  const std::shared_ptr<Communicator> communicator_;
  const BucketMemory memory_;
  const BucketWork work_;
  TextExchange reasons_;
  Stage stage_ = Stage::skipped;
};

}  // namespace kolo::detail
