#include <kolo/core/cluster/kept_threads.h>

#include <pthread.h>

#include <limits>
#include <system_error>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo::detail {

KeptThreads::~KeptThreads() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    ready_.notify_all();
  }
  for (auto& thread : threads) thread.join();
}

void KeptThreads::run(std::function<void()> work) {
  MutexLock lock(mutex_);
  if (queue_.size() >= idle_ && threads_.size() < most_) {
    try {
      threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error& error) {
      const bool runs_at_once = most_ == std::numeric_limits<std::size_t>::max();
      if (threads_.empty() || runs_at_once)
        throw ResourceExhaustedError("the system gives no thread: {}", error.what());
    }
  }
  queue_.push_back(std::move(work));
  ++undone_;
  // Under the lock: another thread may take the work at once, and be the last that this object waits for.
  ready_.notify_one();
}

std::size_t KeptThreads::wait_until_idle(std::chrono::steady_clock::time_point end) {
  MutexLock lock(mutex_);
  while (undone_ > 0 && all_done_.wait_until(mutex_, end)) {
  }
  return undone_;
}

void KeptThreads::serve() {
  pthread_setname_np(pthread_self(), name_);
  while (true) {
    std::function<void()> work;
    {
      MutexLock lock(mutex_);
      ++idle_;
      while (queue_.empty() && !stopping_) ready_.wait(mutex_);
      --idle_;
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
    work = nullptr;  // what it holds goes before it counts as done
    MutexLock lock(mutex_);
    if (--undone_ == 0) all_done_.notify_all();
  }
}

}  // namespace kolo::detail
