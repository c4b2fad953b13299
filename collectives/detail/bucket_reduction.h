// One bucket of a schedule, as the operation that the communication thread advances in every step.
#pragma once

#include <memory>
#include <span>
#include <string>

#include <kolo/collectives/communicator.h>
#include <kolo/collectives/detail/scheduled_operation.h>
#include <kolo/collectives/detail/step_state.h>
#include <kolo/collectives/flight_recorder.h>
#include <kolo/collectives/text_exchange.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo::detail {

/// Sends this rank's flags with the gradients. Where the bucket comes back void, the ranks tell each other
/// why: all of them, since all have seen the same flags. Keeps alive what its messages refer to.
class BucketReduction final : public ScheduledOperation {
 public:
  /// elements: the gradients' and the padding's; the flags follow them. tensors: the gradients, each with
  /// coefficients of its own where they are combined by Adasum.
  BucketReduction(int bucket, std::shared_ptr<StepState> state, std::shared_ptr<Communicator> communicator,
                  std::shared_ptr<Buffer> memory, DType dtype, std::int64_t elements,
                  const Reduction& reduction, std::span<const TypedBuffer> tensors, std::string label);

  OperationDetails details() const override;
  StepState& state() { return *state_; }

  void start() override;
  Progress progress() override;
  const char* phase() const override;

 private:
  enum class Stage { skipped, reducing, asking };

  const int bucket_;
  const std::shared_ptr<StepState> state_;
  const std::shared_ptr<Communicator> communicator_;
  const std::shared_ptr<Buffer> memory_;
  const DType dtype_;
  std::byte* const flags_;
  const std::shared_ptr<Collective> allreduce_;
  TextExchange reasons_;
  Stage stage_ = Stage::skipped;
};

}  // namespace kolo::detail
