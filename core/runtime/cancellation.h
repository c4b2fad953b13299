// How another thread ends a step that is under way, or one that is yet to begin.
#pragma once

#include <exception>
#include <functional>

#include <kolo/core/base/mutex.h>

namespace kolo {

/// Lets another thread end a step. Any thread; it outlives the step.
class StepCancellation {
 public:
  /// The step ends with `error`, unless it has failed already; one that begins later fails at once. The first
  /// call counts. Does not wait.
  void cancel(std::exception_ptr error) KOLO_EXCLUDES(mutex_);
  /// What it was cancelled with; null where it was not.
  std::exception_ptr error() KOLO_EXCLUDES(mutex_);

 private:
  friend class StepListener;
  Mutex mutex_;
  std::exception_ptr error_ KOLO_GUARDED_BY(mutex_);
  std::function<void(std::exception_ptr)> step_ KOLO_GUARDED_BY(mutex_);  // ends the step under way
};

/// Tells a cancellation of the step under way, while it lives.
class StepListener {
 public:
  /// cancellation: null where nobody cancels. end_step: called at most once, perhaps at once; does not wait.
  StepListener(StepCancellation* cancellation, std::function<void(std::exception_ptr)> end_step);
  ~StepListener();
  StepListener(const StepListener&) = delete;
  StepListener& operator=(const StepListener&) = delete;

 private:
  StepCancellation* cancellation_;
};

}  // namespace kolo
