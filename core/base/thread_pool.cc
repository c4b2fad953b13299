#include <kolo/core/base/thread_pool.h>

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/stop_signal.h>

namespace kolo {

int available_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

ThreadPool::ThreadPool(std::string name, int threads) {
  if (threads <= 0) threads = available_cores();
  workers_.reserve(threads);
  try {
    for (int i = 0; i < threads; ++i) {
      workers_.emplace_back([this, short_name = name.substr(0, 15)] {
        pthread_setname_np(pthread_self(), short_name.c_str());
        block_stop_signals();
        work();
      });
    }
  } catch (const std::system_error& error) {
    const int started = size();
    finish();
    throw ResourceExhaustedError("thread pool \"{}\": {} of {} threads could be started ({})", name, started,
                                 threads, error.code().message());
  }
}

ThreadPool::~ThreadPool() { finish(); }

void ThreadPool::finish() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::schedule(std::function<void()> work) {
  {
    MutexLock lock(mutex_);
    queue_.push_back(std::move(work));
  }
  ready_.notify_one();
}

void ThreadPool::work() {
  while (true) {
    std::function<void()> next;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_) ready_.wait(mutex_);
      if (queue_.empty()) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    next();
  }
}

}  // namespace kolo
