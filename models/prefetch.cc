#include <kolo/models/prefetch.h>

#include <pthread.h>

#include <exception>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo::models {

Prefetcher::Prefetcher(std::unique_ptr<BatchSource> source, int depth)
    : source_(std::move(source)), position_(source_->position()) {
  if (depth < 1) throw InvalidArgumentError("{} batches to read ahead; at least 1 is needed", depth);
  ring_.resize(static_cast<std::size_t>(depth));
  thread_ = std::thread([this] { read(); });
  pthread_setname_np(thread_.native_handle(), "kolo-input");
}

Prefetcher::~Prefetcher() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetcher::next(Batch& batch) {
  {
    MutexLock lock(mutex_);
    while (filled_ == taken_ && !error_) changed_.wait(mutex_);
    if (filled_ == taken_) std::rethrow_exception(error_);
    Slot& ready = slot(taken_);
    std::swap(batch, ready.batch);
    position_ = ready.after;
    ++taken_;
  }
  changed_.notify_all();
}

BatchPosition Prefetcher::position() const {
  MutexLock lock(mutex_);
  return position_;
}

void Prefetcher::seek(const BatchPosition& position) {
  {
    MutexLock lock(mutex_);
    while (reading_) changed_.wait(mutex_);
    source_->seek(position);
    taken_ = filled_;
    error_ = nullptr;
    position_ = source_->position();
  }
  changed_.notify_all();
}

void Prefetcher::read() {
  while (true) {
    Slot* target = nullptr;
    {
      MutexLock lock(mutex_);
      while (!may_read() && !stopping_) changed_.wait(mutex_);
      if (stopping_) return;
      reading_ = true;
      target = &slot(filled_);
    }
    std::exception_ptr error;
    try {
      source_->next(target->batch);
      target->after = source_->position();
    } catch (...) {
      error = std::current_exception();
    }
    {
      MutexLock lock(mutex_);
      reading_ = false;
      if (error) error_ = std::move(error);  // the consumer frees it: ThreadSanitizer cannot see its counter
      else ++filled_;
    }
    changed_.notify_all();
  }
}

}  // namespace kolo::models
