// Masters that watched this task and are gone: what their sessions hold here is given back.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/rpc/served.h>

namespace kolo::detail {

/// Any thread.
class LostMasters {
 public:
  /// Both are called on a thread of its own.
  struct Hooks {
    /// No watch of this process has stood for `patience`. Again only after it has come back.
    std::function<void(const TaskProcess& master, std::chrono::seconds time)> gone;
    /// A watch of this process stands: others that its task was before are no more.
    std::function<void(const TaskProcess& master)> restarted;
  };
  /// patience of 0: none is gone, whatever the time.
  LostMasters(std::chrono::milliseconds patience, Hooks hooks);
  ~LostMasters() = default;
  LostMasters(const LostMasters&) = delete;
  LostMasters& operator=(const LostMasters&) = delete;

  void hear(const TaskProcess& watcher, WatcherEvent event) KOLO_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  void collect(const std::stop_token& stop) KOLO_EXCLUDES(mutex_);

  const std::chrono::milliseconds patience_;
  const Hooks hooks_;
  Mutex mutex_;
  CondVar changed_;
  std::map<TaskProcess, int> watches_
      KOLO_GUARDED_BY(mutex_);  // that stand; a new one may come before the old ends
  std::map<TaskProcess, Clock::time_point> gone_since_ KOLO_GUARDED_BY(mutex_);
  std::vector<TaskProcess> connected_ KOLO_GUARDED_BY(mutex_);  // not told yet
  std::jthread thread_;                                         // last: it ends before what it uses
};

}  // namespace kolo::detail
