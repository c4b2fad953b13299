// Waits for others of this process that end when a stop is asked for, too.
#pragma once

#include <chrono>
#include <stop_token>

#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/call.h>

namespace kolo::detail {

/// Wakes those who wait for `changed` when a stop is asked for. Made and destroyed without the lock.
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

/// Of a run, for another one, which may take as long as a task that is slow or gone: with a WakeOnStop.
/// Throws DeadlineExceededError `Timed out waiting for notification`, and CancelledError where a stop is
/// asked for.
inline void wait_for_change(CondVar& changed, Mutex& mutex, const Deadline& deadline) KOLO_REQUIRES(mutex) {
  if (deadline.stop().stop_requested()) throw CancelledError("the run was cancelled");
  if (!deadline) return changed.wait(mutex);
  if (!changed.wait_until(mutex, *deadline) && std::chrono::steady_clock::now() >= *deadline)
    throw DeadlineExceededError("Timed out waiting for notification");
}

/// A stop that either of two asks for.
class EitherStop {
 public:
  EitherStop(const std::stop_token& one, const std::stop_token& other)
      : on_one_(one, Request{source_}), on_other_(other, Request{source_}) {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  struct Request {
    void operator()() { source.request_stop(); }
    std::stop_source source;
  };
  std::stop_source source_;
  const std::stop_callback<Request> on_one_, on_other_;
};

}  // namespace kolo::detail
