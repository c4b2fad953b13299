#include <kolo/core/cluster/lost_masters.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <kolo/core/cluster/waits.h>

namespace kolo::detail {

LostMasters::LostMasters(std::chrono::milliseconds patience, Hooks hooks)
    : patience_(patience),
      hooks_(std::move(hooks)),
      thread_([this](const std::stop_token& stop) { collect(stop); }) {}

void LostMasters::hear(const TaskProcess& watcher, WatcherEvent event) {
  MutexLock lock(mutex_);
  if (event == WatcherEvent::connected) {
    ++watches_[watcher];
    gone_since_.erase(watcher);
    connected_.push_back(watcher);
  } else {
    if (--watches_[watcher] > 0) return;
    watches_.erase(watcher);
    if (patience_.count() == 0) return;
    gone_since_[watcher] = Clock::now();
  }
  changed_.notify_all();
}

void LostMasters::collect(const std::stop_token& stop) {
  const WakeOnStop wake(stop, mutex_, changed_);
  while (true) {
    std::vector<TaskProcess> connected;
    std::vector<std::pair<TaskProcess, std::chrono::seconds>> due;
    {
      MutexLock lock(mutex_);
      if (stop.stop_requested()) return;
      connected.swap(connected_);
      const auto now = Clock::now();
      std::optional<Clock::time_point> next;
      for (auto at = gone_since_.begin(); at != gone_since_.end();) {
        const auto end = at->second + patience_;
        if (end <= now) {
          due.emplace_back(at->first, std::chrono::duration_cast<std::chrono::seconds>(now - at->second));
          at = gone_since_.erase(at);
        } else {
          next = next ? std::min(*next, end) : end;
          ++at;
        }
      }
      if (due.empty() && connected.empty()) {
        if (next) changed_.wait_until(mutex_, *next);
        else changed_.wait(mutex_);
        continue;
      }
    }
    for (const TaskProcess& master : connected) hooks_.restarted(master);
    for (const auto& [master, gone] : due) hooks_.gone(master, gone);
  }
}

}  // namespace kolo::detail
