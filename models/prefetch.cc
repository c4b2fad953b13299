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
  ahead_.next([&](Slot& ready) {
    std::swap(batch, ready.batch);
    position_ = ready.after;
  });
}

void Prefetcher::seek(const BatchPosition& position) {
  ahead_.restart([&] {
    source_->seek(position);
    position_ = source_->position();
  });
}

}  // namespace kolo::models
