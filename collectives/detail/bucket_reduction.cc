#include <kolo/collectives/detail/bucket_reduction.h>

#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/sequence.h>

namespace kolo::detail {
namespace {

std::shared_ptr<Collective> adasum_of_each(Communicator& communicator, std::span<const TypedBuffer> tensors,
                                           const TypedBuffer& flags) {
  std::vector<std::shared_ptr<Collective>> all;
  for (const TypedBuffer& tensor : tensors) all.push_back(communicator.allreduce(tensor, ReduceOp::adasum));
  all.push_back(communicator.allreduce(flags, ReduceOp::sum));
  return in_sequence(std::move(all));
}

}  // namespace

BucketReduction::BucketReduction(int bucket, std::shared_ptr<StepState> state,
                                 std::shared_ptr<Communicator> communicator, std::shared_ptr<Buffer> memory,
                                 DType dtype, std::int64_t elements, const Reduction& reduction,
                                 std::span<const TypedBuffer> tensors, std::string label)
    : ScheduledOperation(std::move(label)),
      bucket_(bucket),
      state_(std::move(state)),
      communicator_(std::move(communicator)),
      memory_(std::move(memory)),
      dtype_(dtype),
      flags_(memory_->data() + elements * static_cast<std::int64_t>(size_of(dtype))),
      allreduce_(
          reduction.op == ReduceOp::adasum
              ? adasum_of_each(*communicator_, tensors, {flags_, kFlagElements, dtype})
              : communicator_->allreduce({memory_->data(), elements + kFlagElements, dtype}, reduction)),
      reasons_(*communicator_) {}

OperationDetails BucketReduction::details() const {
  return {.kind = "allreduce", .dtype = dtype_, .bytes = flags_ - memory_->data()};
}

void BucketReduction::start() {
  StepFlags flags;
  if (!state_->begin_bucket(bucket_, flags)) {
    stage_ = Stage::skipped;
    return;
  }
  write_flags(dtype_, flags_, flags);
  stage_ = Stage::reducing;
  allreduce_->start();
}

Progress BucketReduction::progress() {
  switch (stage_) {
    case Stage::skipped: return Progress::finished;
    case Stage::reducing: {
      const Progress progress = allreduce_->progress();
      if (progress != Progress::finished) return progress;
      const StepFlags flags = read_flags(dtype_, flags_);
      state_->received(bucket_, flags);
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
  return stage_ == Stage::reducing ? allreduce_->phase() : nullptr;
}

}  // namespace kolo::detail
