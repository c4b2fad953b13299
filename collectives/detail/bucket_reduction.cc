#include <kolo/collectives/detail/bucket_reduction.h>

#include <utility>

namespace kolo::detail {

BucketReduction::BucketReduction(int bucket, std::shared_ptr<StepState> state,
                                 std::shared_ptr<Communicator> communicator, std::shared_ptr<Buffer> memory,
                                 DType dtype, std::int64_t elements, ReduceOp op, std::string label)
    : bucket_(bucket),
      state_(std::move(state)),
      communicator_(std::move(communicator)),
      memory_(std::move(memory)),
      dtype_(dtype),
      flags_(memory_->data() + elements * static_cast<std::int64_t>(size_of(dtype))),
      label_(std::move(label)),
      allreduce_(communicator_->allreduce({memory_->data(), elements + kFlagElements, dtype}, op)),
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
