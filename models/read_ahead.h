// Work that is done before it is asked for, by threads of its own.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>

namespace kolo::models {

// Several threads that fill one batch.

/// Threads "kolo-decode", which wait between batches. One thread at a time calls run(). The destructor stops
/// and joins them.
class ReadThreads {
 public:
  /// threads ≥ 1, the caller's own included.
  explicit ReadThreads(int threads);
  ~ReadThreads();
  ReadThreads(const ReadThreads&) = delete;
  ReadThreads& operator=(const ReadThreads&) = delete;

  /// work(0) … work(count − 1), in any order and at the same time; returns when all are done. Of those that
  /// throw, the error of the least number is thrown, so that it is the same on every run.
  void run(std::int64_t count, const std::function<void(std::int64_t)>& work);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Items read by a thread of its own while those before them are used.

namespace detail {
/// "kolo-input", for who looks at the threads of a process.
void name_input_thread(std::thread& thread);
}  // namespace detail

/// One consumer thread; the thread "kolo-input" reads. The destructor stops and joins it.
template <typename Item>
class ReadAhead {
 public:
  /// read: fills in the next item, over one that is used no more; false at the end. Reads at most `depth`
  /// items ahead. Throws InvalidArgumentError if depth < 1.
  ReadAhead(int depth, std::function<bool(Item&)> read) : read_(std::move(read)) {
    if (depth < 1) throw InvalidArgumentError("{} batches to read ahead; at least 1 is needed", depth);
    ring_.resize(static_cast<std::size_t>(depth));
    thread_ = std::thread([this] { run(); });
    detail::name_input_thread(thread_);
  }
  ~ReadAhead() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// take(Item&) may change the next item as it likes. Waits until it is read; false at the end. An error of
  /// `read` comes once the items before it are taken, at each call until restart().
  template <typename Take>
  bool next(Take take) KOLO_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      while (filled_ == taken_ && !error_ && !ended_) changed_.wait(mutex_);
      if (filled_ == taken_ && error_) std::rethrow_exception(error_);
      if (filled_ == taken_) return false;
      take(slot(taken_));
      ++taken_;
    }
    changed_.notify_all();
    return true;
  }

  /// change() runs while nothing is read; then what was read ahead is dropped, an error and the end are
  /// forgotten. Where it throws nothing has happened.
  template <typename Change>
  void restart(Change change) KOLO_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      while (reading_) changed_.wait(mutex_);
      change();
      taken_ = filled_;
      error_ = nullptr;
      ended_ = false;
    }
    changed_.notify_all();
  }

 private:
  void run() {
    while (true) {
      Item* target = nullptr;
      {
        MutexLock lock(mutex_);
        while (!may_read() && !stopping_) changed_.wait(mutex_);
        if (stopping_) return;
        reading_ = true;
        target = &slot(filled_);
      }
      std::exception_ptr error;
      bool found = false;
      try {
        found = read_(*target);
      } catch (...) {
        error = std::current_exception();
      }
      {
        MutexLock lock(mutex_);
        reading_ = false;
        if (error)
          error_ = std::move(error);  // the consumer frees it: ThreadSanitizer cannot see its counter
        else if (found) ++filled_;
        else ended_ = true;
      }
      changed_.notify_all();
    }
  }

  Item& slot(std::int64_t number) { return ring_[static_cast<std::size_t>(number) % ring_.size()]; }
  bool may_read() const KOLO_REQUIRES(mutex_) {
    return !error_ && !ended_ && filled_ - taken_ < static_cast<std::int64_t>(ring_.size());
  }

  // Called by the input thread alone while reading_ is set. The slots [taken_, filled_) are the consumer's.
  const std::function<bool(Item&)> read_;
  std::vector<Item> ring_;

  Mutex mutex_;
  CondVar changed_;
  std::int64_t filled_ KOLO_GUARDED_BY(mutex_) = 0;
  std::int64_t taken_ KOLO_GUARDED_BY(mutex_) = 0;
  bool reading_ KOLO_GUARDED_BY(mutex_) = false;
  bool ended_ KOLO_GUARDED_BY(mutex_) = false;
  bool stopping_ KOLO_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ KOLO_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace kolo::models
