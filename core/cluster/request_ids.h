// Which requests a task, or its master, has had: one that comes twice is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>

#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>

namespace kolo::detail {

/// Any thread.
class RequestIds {
 public:
  static constexpr std::size_t kRemembered = 100'000;

  /// Throws AbortedError `Duplicate request` for one of the last 100,000.
  void add(std::uint64_t id) KOLO_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (!known_.insert(id).second) throw AbortedError("Duplicate request {:016x}", id);
    order_.push_back(id);
    if (order_.size() <= kRemembered) return;
    known_.erase(order_.front());
    order_.pop_front();
  }

 private:
  Mutex mutex_;
  std::unordered_set<std::uint64_t> known_ KOLO_GUARDED_BY(mutex_);
  std::deque<std::uint64_t> order_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
