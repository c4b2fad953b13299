#include <kolo/collectives/job/init_alarm.h>

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration of(std::chrono::duration<double> limit) {
  return std::chrono::duration_cast<Clock::duration>(limit);
}

constexpr const char* kWhy = "a rank has ended before it called kolo::init(), or has not come to it";

}  // namespace

InitAlarm::InitAlarm(StallLimits limits) {
  if (limits.warning.count() > 0 || limits.abort.count() > 0)
    thread_ = std::thread([=, this] { watch(limits); });
}

InitAlarm::~InitAlarm() {
  {
    MutexLock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool InitAlarm::is_over_after(Clock::time_point time) {
  MutexLock lock(mutex_);
  while (!is_over_ && Clock::now() < time) changed_.wait_until(mutex_, time);
  return is_over_;
}

void InitAlarm::watch(StallLimits limits) {
  const auto begin = Clock::now();
  const bool warns =
      limits.warning.count() > 0 && (limits.abort.count() == 0 || limits.warning < limits.abort);
  if (warns) {
    if (is_over_after(begin + of(limits.warning))) return;
    log_warning("init: waiting for the other ranks for {:g} s: {}", limits.warning.count(), kWhy);
  }
  if (limits.abort.count() == 0 || is_over_after(begin + of(limits.abort))) return;
  std::fprintf(stderr, "a rank on %s ends: init has waited %g s for the others (KOLO_STALL_ABORT_S): %s\n",
               process().hostname.c_str(), limits.abort.count(), kWhy);
  _exit(1);
}

}  // namespace kolo::detail
