// Which threads a session's runs use: of its own, of the whole process, or of sessions that name a pool.
#pragma once

#include <memory>
#include <vector>

#include <kolo/core/base/thread_pool.h>
#include <kolo/core/runtime/config.h>

namespace kolo::detail {

/// The process's number of threads for one kernel: the first call fixes it. Throws InvalidArgumentError if
/// `configured` is negative.
int intra_op_threads_of_process(int configured);

/// The inter-op pools of one session. Any thread.
class SessionPools {
 public:
  /// default_threads: what 0 stands for. Throws InvalidArgumentError for negative sizes of pools, and where a
  /// named pool exists with another size.
  SessionPools(const SessionConfig& config, int default_threads);

  /// The helpers beside the caller's thread; null: none. −1 is the caller's thread alone. Throws
  /// InvalidArgumentError `Invalid inter_op_thread_pool: <i>`.
  ThreadPool* at(int index) const;
  /// Threads of pool 0, with the caller's.
  int threads() const { return pools_.front() ? pools_.front()->size() + 1 : 1; }

 private:
  std::vector<std::shared_ptr<ThreadPool>> pools_;
};

}  // namespace kolo::detail
