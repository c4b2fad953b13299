#include <kolo/collectives/schedule/step_end.h>

#include <utility>

namespace kolo::detail {

void StepEnd::close() {
  MutexLock lock(mutex_);
  is_open_ = false;
}

void StepEnd::finish(const std::exception_ptr& error) {
  SlotDone waiting;
  {
    MutexLock lock(mutex_);
    is_open_ = true;
    if (error) error_ = error;
    waiting = std::exchange(waiting_, nullptr);
    changed_.notify_all();
  }
  if (waiting) waiting(error);
}

void StepEnd::when_open(SlotDone done) {
  std::exception_ptr error;
  {
    MutexLock lock(mutex_);
    if (!is_open_) {
      waiting_ = std::move(done);
      return;
    }
    error = error_;
  }
  done(error);
}

void StepEnd::break_off(const std::exception_ptr& error) {
  SlotDone waiting;
  {
    MutexLock lock(mutex_);
    waiting = std::exchange(waiting_, nullptr);
  }
  if (waiting) waiting(error);
}

bool StepEnd::wait_until(std::chrono::steady_clock::time_point deadline) const {
  MutexLock lock(mutex_);
  while (!is_open_)
    if (!changed_.wait_until(mutex_, deadline) && std::chrono::steady_clock::now() >= deadline)
      return is_open_ && error_ == nullptr;
  return error_ == nullptr;
}

}  // namespace kolo::detail
