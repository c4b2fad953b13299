#include <kolo/collectives/schedule/slots.h>

#include <utility>

#include <kolo/collectives/schedule/schedule_core.h>
#include <kolo/core/base/error.h>

namespace kolo {

void Slot::submit_at_turn(Done done, bool to_read) { core_->submit(turn_, std::move(done), to_read); }

std::int64_t ShardsSlot::offset(std::int64_t of_gradient) const {
  const auto bytes = [](DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); };
  return of_gradient / bytes(of_gradients_) * bytes(dtype_);
}

void ShardsSlot::submit(Done done) { submit_at_turn(std::move(done), /*to_read=*/false); }

ShardsSlot& BucketSlot::shards() const {
  if (shards_ == nullptr) throw InternalError("nothing of the bucket of turn {} is gathered", turn());
  return *shards_;
}

void BucketSlot::submit(Done done) {
  if (on_gpu_ != nullptr) on_gpu_->mark_written();
  submit_at_turn(std::move(done), /*to_read=*/false);
}

void BucketSlot::submit_to_read(Done done) {
  if (!may_be_read_) return submit(std::move(done));
  submit_at_turn(std::move(done), /*to_read=*/true);
}

std::span<const std::byte* const> BucketSlot::memory_of_ranks() const {
  return may_be_read_ ? work_->elements_of_ranks() : std::span<const std::byte* const>();
}

void RowsSlot::submit(const Tensor& values, const Tensor& indices, Done done) {
  work_->set_own(values, indices);
  submit_at_turn(std::move(done), /*to_read=*/false);
}

const Tensor& RowsSlot::values() const { return work_->values(); }
const Tensor& RowsSlot::indices() const { return work_->indices(); }

std::shared_ptr<Buffer> FactorsSlot::memory(std::size_t bytes) {
  const NodeMemory& own = core_->runtime->memory_of_all().own();
  const auto is_shared = [&](const Buffer& buffer) {
    return own.offset_of(buffer.data(), static_cast<std::int64_t>(buffer.bytes())).has_value();
  };
  if (!bucket_->may_be_read() || !is_shared(*bucket_->memory())) return nullptr;
  if (memory_ == nullptr) memory_ = std::make_shared<Buffer>(core_->runtime->bucket_allocator(), bytes);
  return is_shared(*memory_) ? memory_ : nullptr;
}

void FactorsSlot::submit(const detail::OwnFactors& own, Done done) {
  work_->set_own(own);
  submit_at_turn(std::move(done), /*to_read=*/true);
}

std::span<const std::byte* const> FactorsSlot::memory_of_ranks() const { return work_->memory_of_ranks(); }

}  // namespace kolo
