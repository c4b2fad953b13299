#include <kolo/models/prefetch.h>

#include <utility>

namespace kolo::models {

Prefetcher::Prefetcher(std::unique_ptr<BatchSource> source, int depth)
    : source_(std::move(source)), position_(source_->position()), ahead_(depth, [this](Slot& slot) {
        source_->next(slot.batch);
        if (Allocator* const memory = memory_.load()) {
          bring(slot.batch.samples, *memory);
          bring(slot.batch.labels, *memory);
        }
        slot.after = source_->position();
        return true;
      }) {}

void Prefetcher::next(Batch& batch) {
  ahead_.next([&](Slot& ready) {
    std::swap(batch, ready.batch);
    position_ = ready.after;
  });
}

// Once for each tensor that goes round, as long as its size stays.
void Prefetcher::bring(Tensor& tensor, Allocator& memory) {
  if (!tensor || there_.count(tensor.raw()) > 0) return;
  Tensor copy(tensor.dtype(), tensor.shape(), memory);
  copy.copy_from(tensor);
  there_.insert(copy.raw());
  tensor = std::move(copy);
}

void Prefetcher::seek(const BatchPosition& position) {
  ahead_.restart([&] {
    source_->seek(position);
    position_ = source_->position();
  });
}

}  // namespace kolo::models
