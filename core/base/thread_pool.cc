#include <kolo/core/base/thread_pool.h>

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/looks.h>
#include <kolo/core/base/stop_signal.h>

namespace kolo {
namespace {

// How often withdraw() looks for the last visitor before it sleeps: that one is about to leave.
constexpr int kLooks = 100;

}  // namespace

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
      workers_.emplace_back([this, i, short_name = name.substr(0, 15)] {
        pthread_setname_np(pthread_self(), short_name.c_str());
        block_stop_signals();
        work(i);
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
  wake();
}

void ThreadPool::offer(WorkSource& source) {
  MutexLock lock(mutex_);
  source.next_ = sources_;
  sources_ = &source;
}

void ThreadPool::withdraw(WorkSource& source) {
  {
    MutexLock lock(mutex_);
    WorkSource** link = &sources_;
    while (*link != &source) link = &(*link)->next_;
    *link = source.next_;
  }
  for (Looks looks(0, kLooks); source.visitors_.load() > 0 && looks.go_on();) continue;
  // The lock even where nobody is left: who left last may still hold it.
  MutexLock lock(mutex_);
  while (source.visitors_.load() > 0) left_.wait(mutex_);
}

void ThreadPool::wake() {
  // Sequentially consistent, as is the sleeper's order: it counts itself, then looks for work once more.
  if (sleepers_.load() == 0) return;
  {
    MutexLock lock(mutex_);
    if (sleepers_.load() == 0) return;
    --sleepers_;
    ++wake_ups_;
  }
  ready_.notify_one();
}

void ThreadPool::work(int worker) {
  MutexLock lock(mutex_);
  while (true) {
    if (run_something(worker)) continue;
    if (stopping_) return;
    ++sleepers_;
    if (run_something(worker)) {
      // Whoever saw this thread as a sleeper meanwhile has left it a wake-up.
      if (wake_ups_ > 0) --wake_ups_;
      else --sleepers_;
      continue;
    }
    while (wake_ups_ == 0 && !stopping_) ready_.wait(mutex_);
    if (wake_ups_ > 0) --wake_ups_;
  }
}

// Gives the lock back while it runs the oldest closure, or takes part in a source that has work.
bool ThreadPool::run_something(int worker) {
  if (!queue_.empty()) {
    const std::function<void()> next = std::move(queue_.front());
    queue_.pop_front();
    mutex_.unlock();
    next();
    mutex_.lock();
    return true;
  }
  WorkSource** link = &sources_;
  while (*link != nullptr && !(*link)->has_work()) link = &(*link)->next_;
  WorkSource* const source = *link;
  if (source == nullptr) return false;
  ++source->visitors_;
  // The next worker asks the others first.
  *link = source->next_;
  source->next_ = nullptr;
  WorkSource** last = &sources_;
  while (*last != nullptr) last = &(*last)->next_;
  *last = source;
  mutex_.unlock();
  source->take_part(worker);
  mutex_.lock();
  if (--source->visitors_ == 0) left_.notify_all();
  return true;
}

}  // namespace kolo
