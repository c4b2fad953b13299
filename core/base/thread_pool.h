// A fixed set of threads that run closures: the inter-op pool. The loops inside a kernel are split by OpenMP.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <kolo/core/base/mutex.h>

namespace kolo {

/// schedule: any thread. The destructor runs what is still queued, then joins.
class ThreadPool {
 public:
  /// `threads` workers named `name` (cut to 15 letters); 0 or less is one per core of the process's affinity
  /// mask. Throws ResourceExhaustedError if the system gives fewer.
  ThreadPool(std::string name, int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()); }
  /// Runs `work` on some worker. `work` must not throw.
  void schedule(std::function<void()> work) KOLO_EXCLUDES(mutex_);

 private:
  void work();
  void finish();

  Mutex mutex_;
  CondVar ready_;
  std::deque<std::function<void()>> queue_ KOLO_GUARDED_BY(mutex_);
  bool stopping_ KOLO_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;
};

/// Cores this process may use (its affinity mask), at least 1.
int available_cores();

}  // namespace kolo
