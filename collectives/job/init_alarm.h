// Ranks that do not come to MPI_Init, or that do not reach each other in it: MPI itself waits for them for
// ever, and no rank can tell another yet.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include <kolo/collectives/progress/stall_reporter.h>
#include <kolo/core/base/mutex.h>

namespace kolo::detail {

/// While it lives: a warning after limits.warning, and after limits.abort this process ends with exit code 1
/// and a line, so that the launcher ends the others. 0: never. Of the ranks that a launcher has numbered the
/// first warns; the others do so only after twice the time, when that one did not come to wait itself. Its
/// thread does not read the environment, which MPI_Init changes.
class InitAlarm {
 public:
  explicit InitAlarm(StallLimits limits);
  ~InitAlarm();
  InitAlarm(const InitAlarm&) = delete;
  InitAlarm& operator=(const InitAlarm&) = delete;
  /// MPI_Init has returned. Any thread.
  void note_that_all_came();

 private:
  void watch();
  bool is_over_after(std::chrono::steady_clock::time_point time);
  const char* why();

  const StallLimits limits_;
  const bool is_first_rank_;
  const std::string host_;
  Mutex mutex_;
  CondVar changed_;
  bool is_over_ KOLO_GUARDED_BY(mutex_) = false, have_all_come_ KOLO_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace kolo::detail
