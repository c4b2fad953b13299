// Threads on which a worker runs its parts of steps: as many as there are at one time, kept from step to
// step.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include <kolo/core/base/mutex.h>

namespace kolo::detail {

/// Any thread. The destructor waits for all that was begun.
class StepThreads {
 public:
  StepThreads() = default;
  ~StepThreads();
  StepThreads(const StepThreads&) = delete;
  StepThreads& operator=(const StepThreads&) = delete;

  /// Runs `work` at once, beside all other work: it may wait for other tasks. Must not throw.
  void run(std::function<void()> work) KOLO_EXCLUDES(mutex_);

 private:
  void serve() KOLO_EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar ready_;
  std::deque<std::function<void()>> work_ KOLO_GUARDED_BY(mutex_);
  std::size_t idle_ KOLO_GUARDED_BY(mutex_) = 0;
  bool stopping_ KOLO_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
