#include <kolo/core/training/step_timer.h>

#include <kolo/core/base/error.h>

namespace kolo {

StepTimer::StepTimer(std::optional<double> every_secs, std::optional<std::int64_t> every_steps)
    : every_secs_(every_secs), every_steps_(every_steps) {
  if (every_secs && every_steps)
    throw InvalidArgumentError("Can not provide both every_secs and every_steps.");
  if (!every_secs && !every_steps)
    throw InvalidArgumentError("Either every_secs or every_steps should be provided.");
  if (every_secs && !(*every_secs > 0))
    throw InvalidArgumentError("every_secs is {}; it must be above 0", *every_secs);
  if (every_steps && *every_steps <= 0)
    throw InvalidArgumentError("every_steps is {}; it must be above 0", *every_steps);
}

bool StepTimer::is_due(std::int64_t step, Clock::time_point now) const {
  if (!last_step_) return true;
  if (step == *last_step_) return false;
  if (every_steps_) return step >= *last_step_ + *every_steps_;
  return std::chrono::duration<double>(now - last_time_).count() >= *every_secs_;
}

void StepTimer::fired(std::int64_t step, Clock::time_point now) {
  last_step_ = step;
  last_time_ = now;
}

}  // namespace kolo
