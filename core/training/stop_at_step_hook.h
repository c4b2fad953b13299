// Ends the training at a global step.
#pragma once

#include <cstdint>
#include <optional>

#include <kolo/core/training/global_step.h>
#include <kolo/core/training/hook.h>

namespace kolo {

struct StopAtStepOptions {
  std::optional<std::int64_t> num_steps = {};  // steps from the one at which the session is created
  std::optional<std::int64_t> last_step = {};  // the global step after which no other is run
};

/// Asks for the stop after the run that brings the global step to the last one; at least one run is made.
/// With several ranks the others are told with that same step, so all end at it.
class StopAtStepHook : public SessionRunHook {
 public:
  explicit StopAtStepHook(std::int64_t last_step) : StopAtStepHook({.last_step = last_step}) {}
  /// Throws InvalidArgumentError unless exactly one is given.
  explicit StopAtStepHook(StopAtStepOptions options);

  /// Throws FailedPreconditionError `Global step should be created to use StopAtStepHook.`
  void begin(Graph& graph) override;
  void after_create_session(Session& session) override;
  SessionRunArgs before_run(RunContext& context) override;
  void after_run(RunContext& context, const RunValues& values) override;

 private:
  std::optional<std::int64_t> num_steps_;
  std::optional<std::int64_t> last_step_;
  Variable global_step_;
};

}  // namespace kolo
