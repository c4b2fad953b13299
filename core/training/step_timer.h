// When a hook acts: every so many steps or seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace kolo {

/// Due at the first question, then `every_steps` steps or `every_secs` seconds after it last fired; never
/// twice for one step.
class StepTimer {
 public:
  using Clock = std::chrono::steady_clock;

  /// Exactly one of the two, above zero. Throws InvalidArgumentError `Can not provide both every_secs and
  /// every_steps.`, `Either every_secs or every_steps should be provided.`
  StepTimer(std::optional<double> every_secs, std::optional<std::int64_t> every_steps);

  bool is_due(std::int64_t step, Clock::time_point now = Clock::now()) const;
  void fired(std::int64_t step, Clock::time_point now = Clock::now());
  std::optional<std::int64_t> last_step() const { return last_step_; }

 private:
  std::optional<double> every_secs_;
  std::optional<std::int64_t> every_steps_;
  std::optional<std::int64_t> last_step_;
  Clock::time_point last_time_;
};

}  // namespace kolo
