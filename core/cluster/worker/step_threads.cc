#include <kolo/core/cluster/worker/step_threads.h>

#include <pthread.h>

#include <utility>

namespace kolo::detail {

StepThreads::~StepThreads() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    ready_.notify_all();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void StepThreads::run(std::function<void()> work) {
  MutexLock lock(mutex_);
  if (work_.size() >= idle_) threads_.emplace_back([this] { serve(); });
  work_.push_back(std::move(work));
  ready_.notify_one();
}

void StepThreads::serve() {
  pthread_setname_np(pthread_self(), "kolo-step");
  while (true) {
    std::function<void()> work;
    {
      MutexLock lock(mutex_);
      ++idle_;
      while (work_.empty() && !stopping_) ready_.wait(mutex_);
      --idle_;
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

}  // namespace kolo::detail
