// When a job is asked to stop because the batch system will end it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <kolo/core/base/batch_job.h>
#include <kolo/core/base/child_program.h>

namespace kolo::detail {

using WallTime = std::chrono::system_clock::time_point;

/// `2026-11-28T06:14:21`, in the time of this place, at the start of `text`; nothing for anything else.
std::optional<WallTime> parse_slurm_time(const std::string& text);

/// When the system ends the job. Slurm is asked, and SLURM_JOB_END_TIME read where it does not answer.
/// Nothing where there is no end, or where nobody tells it.
std::optional<WallTime> find_end(const BatchJob& job, const VariableText& text_of, const RunProgram& run);

/// before_s seconds before `end`; without before_s 60, but at most a tenth of what is left at `start`.
/// Nothing for before_s of 0.
std::optional<WallTime> time_to_stop(WallTime start, WallTime end, std::optional<double> before_s);

/// Follows the end of a batch job, which an operator may move to later or to earlier. One thread.
class StopTime {
 public:
  /// Asks for the end. As long as there is none it is not time. before_s: time_to_stop()'s.
  StopTime(BatchJob job, std::optional<double> before_s, VariableText text_of, RunProgram run);
  std::optional<WallTime> when() const { return when_; }
  /// The last save took so long: when() is then earlier, if need be, by twice that and 10 s before the end.
  void save_took(std::chrono::milliseconds took);
  /// Why when() is earlier than asked for, as an end of a sentence; "" where it is not.
  std::string reason() const;
  /// To be called now and then: asks once a minute, and less often where nobody answers. when() may change.
  void look_again(WallTime now);
  /// The earlier of when() and of the time when look_again() asks; nothing if neither will be.
  std::optional<WallTime> next() const;
  /// At when(): asks again. The end if it is not a later one by now; else nothing, and when() is later.
  std::optional<WallTime> confirm();

 private:
  bool ask();
  void plan();

  const BatchJob job_;
  const std::optional<double> before_s_;
  const VariableText text_of_;
  const RunProgram run_;
  const WallTime start_;
  std::chrono::milliseconds save_{0};
  bool is_for_save_ = false;
  std::optional<WallTime> end_, when_, next_look_;
};

/// How long the save took that this process has just made: a job that is asked to stop may need as long. In a
/// job of Slurm kolorun hears of it by a line on stderr, kSaveTookMarker and milliseconds, which it takes out
/// of the stream. Any thread.
void note_save(std::chrono::milliseconds took);
inline constexpr char kSaveTookMarker[] = "\x01kolo save-took ";
/// The last one that was noted; 0 if none was. Any thread.
std::chrono::milliseconds last_save();

/// `22:07:07`, here.
std::string clock_text(WallTime time);
/// As in 2026-11-27 19:20:01.
std::string date_text(WallTime time);

}  // namespace kolo::detail
