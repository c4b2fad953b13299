#include <kolo/core/cluster/rpc/handler_threads.h>

#include <pthread.h>

#include <system_error>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo::detail {

HandlerThreads::~HandlerThreads() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    ready_.notify_all();
  }
  for (auto& thread : threads) thread.join();
}

void HandlerThreads::run(std::function<void()> work) {
  MutexLock lock(mutex_);
  if (queue_.size() >= idle_ && threads_.size() < most_) {
    try {
      threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error& error) {
      if (threads_.empty()) throw ResourceExhaustedError("the system gives no thread: {}", error.what());
    }
  }
  queue_.push_back(std::move(work));
  ++undone_;
  ready_.notify_one();
}

std::size_t HandlerThreads::wait_until_idle(std::chrono::steady_clock::time_point end) {
  MutexLock lock(mutex_);
  while (undone_ > 0 && all_done_.wait_until(mutex_, end)) {
  }
  return undone_;
}

void HandlerThreads::serve() {
  pthread_setname_np(pthread_self(), "kolo rpc");
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
