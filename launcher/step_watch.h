// Whether srun stays although all that it has started is over.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// Of a heterogeneous job. srun with PMIx starts each of its components in a thread of its own, and two of
/// them can end one and the same helper: one of 30 runs of Slurm 22.05 then waits for that for ever, and
/// holds the job's hosts. As long as the ranks write, nobody asks. One thread.
class StepWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// Of a job that srun can so outlive; else nothing.
  static std::optional<StepWatch> of(const Options& options, const Environment& environment, Ask ask);

  /// jobs: the numbers of the components, with commas. own_step: the step that this process runs in, or "".
  StepWatch(std::string jobs, std::string own_step, Ask ask)
      : jobs_(std::move(jobs)), own_step_(std::move(own_step)), ask_(std::move(ask)) {}

  /// Something has come from srun or the ranks.
  void hear(Clock::time_point now) {
    last_sign_ = now, last_look_.reset(), begun_ = true, looks_without_ = 0;
  }
  /// When is_over() is to look again.
  Clock::time_point next_look() const;
  /// Asks Slurm if it is time for that. True if two answers in turn, seconds apart, name no step, and ranks
  /// have run before.
  bool is_over(Clock::time_point now);

 private:
  std::string jobs_, own_step_;
  Ask ask_;
  Clock::time_point last_sign_ = Clock::now();
  std::optional<Clock::time_point> last_look_;
  bool begun_ = false;  // before that srun may wait for hosts
  int looks_without_ = 0;
};

}  // namespace kolo::launcher
