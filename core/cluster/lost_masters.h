// Masters that watched this task and are gone: what their sessions hold here is given back.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/rpc/served.h>

namespace kolo::detail {

/// Any thread.
class LostMasters {
 public:
  using Close = std::function<void(const std::string& master, std::chrono::seconds gone)>;
  /// close: called on a thread of its own for a master of which no watch has stood for `patience`; again only
  /// after it has come back. patience of 0: never.
  LostMasters(std::chrono::milliseconds patience, Close close);
  ~LostMasters() = default;
  LostMasters(const LostMasters&) = delete;
  LostMasters& operator=(const LostMasters&) = delete;

  void hear(const std::string& watcher, WatcherEvent event) KOLO_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  void collect(const std::stop_token& stop) KOLO_EXCLUDES(mutex_);

  const std::chrono::milliseconds patience_;
  const Close close_;
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, int> watches_
      KOLO_GUARDED_BY(mutex_);  // that stand; a new one may come before the old ends
  std::map<std::string, Clock::time_point> gone_since_ KOLO_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace kolo::detail
