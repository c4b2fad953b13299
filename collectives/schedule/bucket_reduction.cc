#include <kolo/collectives/schedule/bucket_reduction.h>

#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/sequence.h>

namespace kolo::detail {
namespace {

// The flags behind the data: a sum that every rank gets. They come last, so that what they let through is
// there.
std::shared_ptr<Collective> with_flags(Communicator& communicator, const BucketMemory& memory,
                                       std::vector<std::shared_ptr<Collective>> operations) {
  operations.push_back(communicator.allreduce(memory.flags(), ReduceOp::sum));
  return in_sequence(std::move(operations));
}

}  // namespace

BucketWork reduced(Communicator& communicator, const BucketMemory& memory, const Reduction& reduction,
                   std::span<const TypedBuffer> tensors) {
  constexpr const char* kKind = "allreduce";
  if (reduction.op != ReduceOp::adasum) {
    const TypedBuffer all{memory.buffer->data(), memory.elements + kFlagElements, memory.dtype};
    return {communicator.allreduce(all, reduction), kKind};
  }
  std::vector<std::shared_ptr<Collective>> each;
  for (const TypedBuffer& tensor : tensors) each.push_back(communicator.allreduce(tensor, ReduceOp::adasum));
  return {with_flags(communicator, memory, std::move(each)), kKind};
}

BucketWork scattered(Communicator& communicator, const BucketMemory& memory,
                     std::span<const std::int64_t> counts, const Reduction& reduction) {
  auto own = communicator.reduce_scatter(memory.data(), counts, reduction);
  return {with_flags(communicator, memory, {std::move(own)}), "reduce_scatter"};
}

BucketWork gathered(Communicator& communicator, const BucketMemory& memory,
                    std::span<const std::int64_t> counts) {
  std::vector<std::span<std::byte>> blocks;
  std::byte* next = memory.buffer->data();
  for (const std::int64_t count : counts) {
    blocks.emplace_back(next, static_cast<std::size_t>(count) * size_of(memory.dtype));
    next += blocks.back().size();
  }
  return {with_flags(communicator, memory, {communicator.allgather(blocks)}), "allgather"};
}

BucketReduction::BucketReduction(int slot, std::shared_ptr<StepState> state,
                                 std::shared_ptr<Communicator> communicator, BucketMemory memory,
                                 BucketWork work, std::string label)
    : ScheduledOperation(std::move(label)),
      slot_(slot),
      state_(std::move(state)),
      communicator_(std::move(communicator)),
      memory_(std::move(memory)),
      work_(std::move(work)),
      reasons_(*communicator_) {}

OperationDetails BucketReduction::details() const {
  return {.kind = work_.kind,
          .dtype = memory_.dtype,
          .bytes = memory_.elements * static_cast<std::int64_t>(size_of(memory_.dtype))};
}

void BucketReduction::start() {
  StepFlags flags;
  if (!state_->begin_bucket(slot_, flags)) {
    stage_ = Stage::skipped;
    return;
  }
  write_flags(memory_.dtype, memory_.flags().bytes, flags);
  stage_ = Stage::working;
  work_.collective->start();
}

Progress BucketReduction::progress() {
  switch (stage_) {
    case Stage::skipped: return Progress::finished;
    case Stage::working: {
      const Progress progress = work_.collective->progress();
      if (progress != Progress::finished) return progress;
      const StepFlags flags = read_flags(memory_.dtype, memory_.flags().bytes);
      state_->received(slot_, flags);
      if (!flags.is_void()) return Progress::finished;
      reasons_.set_own(state_->own_reason());
      reasons_.start();
      stage_ = Stage::asking;
      return Progress::advanced;
    }
    case Stage::asking: {
      const Progress progress = reasons_.progress();
      if (progress == Progress::finished) state_->set_reasons(reasons_.texts());
      return progress;
    }
  }
  return Progress::none;
}

const char* BucketReduction::phase() const {
  if (stage_ == Stage::asking) return "reasons";
  return stage_ == Stage::working ? work_.collective->phase() : nullptr;
}

}  // namespace kolo::detail
