// Threads for work that waits for other processes: calls that block, parts of steps.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include <kolo/core/base/mutex.h>

namespace kolo::detail {

/// As many threads as were ever needed at once, kept for what comes next. Any thread. The destructor runs
/// what is queued and joins.
class KeptThreads {
 public:
  /// name: of the threads, for debuggers; no longer than 15 characters.
  explicit KeptThreads(const char* name, std::size_t most = std::numeric_limits<std::size_t>::max())
      : name_(name), most_(most) {}
  ~KeptThreads();
  KeptThreads(const KeptThreads&) = delete;
  KeptThreads& operator=(const KeptThreads&) = delete;

  /// Does not wait for `work`, which must not throw; queued while the most threads there may be are busy,
  /// where there is a most: else it runs beside all other work, which it may wait for.
  void run(std::function<void()> work) KOLO_EXCLUDES(mutex_);
  /// Waits until nothing runs and nothing is queued, no longer than until `end`: how many there are then.
  std::size_t wait_until_idle(std::chrono::steady_clock::time_point end) KOLO_EXCLUDES(mutex_);

 private:
  void serve() KOLO_EXCLUDES(mutex_);

  const char* const name_;
  const std::size_t most_;
  Mutex mutex_;
  CondVar ready_;
  CondVar all_done_;
  std::deque<std::function<void()>> queue_ KOLO_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ KOLO_GUARDED_BY(mutex_);
  std::size_t idle_ KOLO_GUARDED_BY(mutex_) = 0;
  std::size_t undone_ KOLO_GUARDED_BY(mutex_) = 0;
  bool stopping_ KOLO_GUARDED_BY(mutex_) = false;
};

}  // namespace kolo::detail
