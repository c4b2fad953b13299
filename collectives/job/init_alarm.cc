#include <kolo/collectives/job/init_alarm.h>

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include <kolo/core/base/launcher.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration of(std::chrono::duration<double> limit) {
  return std::chrono::duration_cast<Clock::duration>(limit);
}

// By a launcher's number: the first would else tell the same as all the others.
bool is_first_rank() {
  const auto launcher = find_launcher();
  return !launcher || launcher->rank.value_or(0) == 0;
}

}  // namespace

InitAlarm::InitAlarm(StallLimits limits)
    : limits_(limits), is_first_rank_(is_first_rank()), host_(process().hostname) {
  if (limits.warning.count() > 0 || limits.abort.count() > 0) thread_ = std::thread([this] { watch(); });
}

InitAlarm::~InitAlarm() {
  {
    MutexLock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void InitAlarm::note_that_all_came() {
  MutexLock lock(mutex_);
  have_all_come_ = true;
}

const char* InitAlarm::why() {
  MutexLock lock(mutex_);
  return have_all_come_ ? "all have come, but they do not reach each other over the network"
                        : "a rank has ended before it called kolo::init(), or has not come to it";
}

bool InitAlarm::is_over_after(Clock::time_point time) {
  MutexLock lock(mutex_);
  while (!is_over_ && Clock::now() < time) changed_.wait_until(mutex_, time);
  return is_over_;
}

void InitAlarm::watch() {
  pthread_setname_np(pthread_self(), "kolo init");
  const auto begin = Clock::now();
  const auto patience = limits_.warning * (is_first_rank_ ? 1 : 2);
  if (patience.count() > 0 && (limits_.abort.count() == 0 || patience < limits_.abort)) {
    if (is_over_after(begin + of(patience))) return;
    log_warning("init: waiting for the other ranks for {:g} s: {}", patience.count(), why());
  }
  if (limits_.abort.count() == 0 || is_over_after(begin + of(limits_.abort))) return;
  std::fprintf(stderr, "a rank on %s ends: init has waited %g s for the others (KOLO_STALL_ABORT_S): %s\n",
               host_.c_str(), limits_.abort.count(), why());
  _exit(1);
}

}  // namespace kolo::detail
