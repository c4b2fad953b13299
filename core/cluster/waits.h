// Waits of a run for other runs of its process, which may take as long as tasks that are slow or gone.
#pragma once

#include <chrono>
#include <stop_token>

#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/call.h>

namespace kolo::detail {

/// Wakes those who wait in wait_for_change() when a stop is asked for. Made and destroyed without the lock.
class WakeOnStop {
 public:
  WakeOnStop(const std::stop_token& stop, Mutex& mutex, CondVar& changed)
      : on_stop_(stop, Wake{mutex, changed}) {}

 private:
  struct Wake {
    void operator()() const {
      MutexLock lock(mutex);
      changed.notify_all();
    }
    Mutex& mutex;
    CondVar& changed;
  };
  const std::stop_callback<Wake> on_stop_;
};

/// Throws DeadlineExceededError `Timed out waiting for notification`, and CancelledError where a stop is
/// asked for.
inline void wait_for_change(CondVar& changed, Mutex& mutex, Deadline deadline, const std::stop_token& stop)
    KOLO_REQUIRES(mutex) {
  if (stop.stop_requested()) throw CancelledError("the run was cancelled");
  if (!deadline) return changed.wait(mutex);
  if (!changed.wait_until(mutex, *deadline) && std::chrono::steady_clock::now() >= *deadline)
    throw DeadlineExceededError("Timed out waiting for notification");
}

}  // namespace kolo::detail
