// Mutex, lock and condition variable that clang's thread-safety analysis can see through.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define KOLO_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define KOLO_THREAD_ANNOTATION(x)
#endif
#define KOLO_GUARDED_BY(mutex) KOLO_THREAD_ANNOTATION(guarded_by(mutex))
#define KOLO_REQUIRES(...) KOLO_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define KOLO_EXCLUDES(...) KOLO_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace kolo {

class KOLO_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() KOLO_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() KOLO_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  bool try_lock() KOLO_THREAD_ANNOTATION(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class KOLO_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) KOLO_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() KOLO_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Waits are written as loops over the condition, so that the analysis sees the guarded reads under the lock.
class CondVar {
 public:
  void wait(Mutex& mutex) KOLO_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  /// False when the deadline passed without a notification.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point deadline) KOLO_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool notified = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace kolo
