// When a job is asked to stop because the batch system will end it.
#pragma once

#include <chrono>
#include <optional>

#include <kolo/launcher/allotment.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

using WallTime = std::chrono::system_clock::time_point;

/// before_s seconds before `end`; without before_s 60, but at most a tenth of what is left at `start`.
/// Nothing for before_s of 0.
std::optional<WallTime> time_to_stop(WallTime start, WallTime end, std::optional<double> before_s);

/// Follows the end of a batch job, which an operator may move. One thread.
class StopTime {
 public:
  /// Asks for the end once. Without one it is never time.
  StopTime(const Options& options, Environment environment, Ask ask);
  std::optional<WallTime> when() const { return when_; }
  /// At when(): asks again. The end if it is still that one; else nothing, and when() is later or never.
  std::optional<WallTime> confirm();

 private:
  const Options& options_;
  const Environment environment_;
  const Ask ask_;
  const WallTime start_;
  std::optional<WallTime> end_, when_;
};

/// `22:07:07`, here.
std::string clock_text(WallTime time);
/// As in 2026-11-27 19:20:01.
std::string date_text(WallTime time);

}  // namespace kolo::launcher
