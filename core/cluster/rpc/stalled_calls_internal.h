// Ends calls whose clients have gone silent: each takes a place among those that a server may have.
#pragma once

#include <memory>
#include <thread>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/rpc/server_call_internal.h>

namespace kolo::detail {

/// Looks at all calls now and then, on a thread of its own, until it is destroyed. A stalled call ends with
/// DeadlineExceededError.
class StalledCalls {
 public:
  explicit StalledCalls(std::shared_ptr<ServerShared> shared);
  ~StalledCalls();
  StalledCalls(const StalledCalls&) = delete;
  StalledCalls& operator=(const StalledCalls&) = delete;

 private:
  void look_after() KOLO_EXCLUDES(mutex_);
  void end_stalled();

  const std::shared_ptr<ServerShared> shared_;
  Mutex mutex_;
  CondVar changed_;
  bool over_ KOLO_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace kolo::detail
