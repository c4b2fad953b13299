#include <kolo/models/prefetch.h>

#include <utility>

#include <kolo/core/runtime/feed_memory.h>

namespace kolo::models {
namespace {

// What is to be filled: in that memory, and nobody else's meanwhile, as that of a copy under way.
void prepare(Tensor& tensor, Allocator& memory) {
  if (tensor && (tensor.buffer()->allocator() != &memory || tensor.buffer().use_count() > 1))
    tensor = Tensor(tensor.dtype(), tensor.shape(), memory);
}

}  // namespace

Prefetcher::Prefetcher(std::unique_ptr<BatchSource> source, int depth)
    : source_(std::move(source)), position_(source_->position()), ahead_(depth, [this](Slot& slot) {
        read(slot);
        return true;
      }) {}

Prefetcher::~Prefetcher() = default;

void Prefetcher::read(Slot& slot) {
  slot.sent = {};  // for a session that was read for before
  if (sender_) sender_->settle();
  if (memory_ != nullptr) {
    prepare(slot.batch.samples, *memory_);
    prepare(slot.batch.labels, *memory_);
  }
  source_->next(slot.batch);
  slot.after = source_->position();
  if (sender_)
    slot.sent = {.samples = sender_->sent(slot.batch.samples),
                 .labels = sender_->sent(slot.batch.labels),
                 .weight = slot.batch.weight};
}

void Prefetcher::next(Batch& batch) {
  ahead_.next([&](Slot& ready) {
    if (ready.sent.samples) batch = std::exchange(ready.sent, {});
    else std::swap(batch, ready.batch);
    position_ = ready.after;
  });
}

void Prefetcher::read_for(Session& session) {
  auto sender = std::make_unique<FeedSender>(session);
  if (!sender->is_needed()) sender = nullptr;
  if (sender == nullptr && sender_ == nullptr) return;
  ahead_.restart([&] {
    source_->seek(position_);
    sender_ = std::move(sender);
    memory_ = sender_ ? &sender_->memory() : &cpu_allocator();
  });
}

void Prefetcher::seek(const BatchPosition& position) {
  ahead_.restart([&] {
    source_->seek(position);
    position_ = source_->position();
  });
}

}  // namespace kolo::models
