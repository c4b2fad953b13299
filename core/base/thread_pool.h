// A fixed set of threads: the inter-op pool. The loops inside a kernel are split by OpenMP.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <kolo/core/base/mutex.h>

namespace kolo {

/// Work in pieces, of which the threads of a pool take as long as there are any: the ready nodes of a step.
/// Being offered to a pool and taken from it allocates nothing.
class WorkSource {
 public:
  virtual ~WorkSource() = default;
  /// Any thread, while the source is offered.
  virtual bool has_work() const = 0;
  /// Called on worker 0 … size() − 1 of the pool: works until there is nothing to take. Must not throw.
  virtual void take_part(int worker) = 0;

 private:
  friend class ThreadPool;
  WorkSource* next_ = nullptr;     // by the pool's mutex
  std::atomic<int> visitors_ = 0;  // workers inside take_part; changed under the pool's mutex
};

/// Any thread. The destructor runs what is still queued, then joins; sources have been withdrawn by then.
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

  /// Idle workers look for work in `source` until it is withdrawn, the sources of one pool in turns.
  void offer(WorkSource& source) KOLO_EXCLUDES(mutex_);
  /// Returns when no worker is in `source` any more.
  void withdraw(WorkSource& source) KOLO_EXCLUDES(mutex_);
  /// An offered source has got one more piece of work: wakes a worker if one sleeps, else costs one read.
  void wake() KOLO_EXCLUDES(mutex_);

 private:
  void work(int worker) KOLO_EXCLUDES(mutex_);
  bool run_something(int worker) KOLO_REQUIRES(mutex_);
  void finish() KOLO_EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar ready_;
  CondVar left_;  // a worker has left a source
  std::deque<std::function<void()>> queue_ KOLO_GUARDED_BY(mutex_);
  WorkSource* sources_ KOLO_GUARDED_BY(mutex_) = nullptr;  // the one that is asked first
  int wake_ups_ KOLO_GUARDED_BY(mutex_) = 0;               // of sleepers, not yet taken
  std::atomic<int> sleepers_ = 0;  // without those to be woken; changed under the mutex, read by wake()
  bool stopping_ KOLO_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;
};

/// Cores this process may use (its affinity mask), at least 1.
int available_cores();

}  // namespace kolo
