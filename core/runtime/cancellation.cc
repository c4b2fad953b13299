#include <kolo/core/runtime/cancellation.h>

#include <utility>

namespace kolo {

void StepCancellation::cancel(std::exception_ptr error) {
  MutexLock lock(mutex_);
  if (error_) return;
  error_ = std::move(error);
  if (step_) step_(error_);
}

std::exception_ptr StepCancellation::error() {
  MutexLock lock(mutex_);
  return error_;
}

StepListener::StepListener(StepCancellation* cancellation, std::function<void(std::exception_ptr)> end_step)
    : cancellation_(cancellation) {
  if (cancellation_ == nullptr) return;
  MutexLock lock(cancellation_->mutex_);
  if (cancellation_->error_) end_step(cancellation_->error_);
  cancellation_->step_ = std::move(end_step);
}

StepListener::~StepListener() {
  if (cancellation_ == nullptr) return;
  MutexLock lock(cancellation_->mutex_);
  cancellation_->step_ = nullptr;
}

}  // namespace kolo
