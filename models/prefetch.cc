#include <kolo/models/prefetch.h>

#include <utility>

namespace kolo::models {

Prefetcher::Prefetcher(std::unique_ptr<BatchSource> source, int depth)
    : source_(std::move(source)), position_(source_->position()), ahead_(depth, [this](Slot& slot) {
        source_->next(slot.batch);
        slot.after = source_->position();
        return true;
      }) {}

void Prefetcher::next(Batch& batch) {
  if (memory_ != nullptr) {
    bring(batch.samples);
    bring(batch.labels);
  }
  ahead_.next([&](Slot& ready) {
    std::swap(batch, ready.batch);
    position_ = ready.after;
  });
}

// What goes back to be filled anew. On the consumer's thread: memory of a GPU that fails is an error of the
// step that needs it, not of a batch that nobody takes.
void Prefetcher::bring(Tensor& tensor) {
  if (!tensor || there_.count(tensor.raw()) > 0) return;
  tensor = Tensor(tensor.dtype(), tensor.shape(), *memory_);
  there_.insert(tensor.raw());
}

void Prefetcher::seek(const BatchPosition& position) {
  ahead_.restart([&] {
    source_->seek(position);
    position_ = source_->position();
  });
}

}  // namespace kolo::models
