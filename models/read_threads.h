// Several threads that fill one batch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace kolo::models {

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

}  // namespace kolo::models
