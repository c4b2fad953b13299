// The hook that writes down, every so often, when each node of a step ran.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <kolo/core/training/hook.h>
#include <kolo/core/training/hooks.h>

namespace kolo {

/// When ProfilerHook traces a step, and where it writes.
struct ProfilerOptions {
  std::optional<std::int64_t> save_steps = {};  // steps between two traces, or
  std::optional<double> save_secs = {};         // seconds
  std::string output_dir = {};                  // must be there; "": where the program was started
};

/// Traces a run and writes `timeline-<step>.json`, for chrome://tracing and Perfetto; never the first run of
/// a session, which compiles, and then as often as asked. A traced run is slower. For one rank.
class ProfilerHook : public SessionRunHook {
 public:
  /// Throws InvalidArgumentError unless exactly one of save_steps and save_secs is given.
  explicit ProfilerHook(ProfilerOptions options);

  /// Throws FailedPreconditionError `Global step should be created to use ProfilerHook.`
  void begin(Graph& graph) override;
  SessionRunArgs before_run(RunContext& context) override;
  /// Throws FailedPreconditionError for a file that cannot be written.
  void after_run(RunContext& context, const RunValues& values) override;

 private:
  ProfilerOptions options_;
  StepTimer timer_;
  bool is_due_ = false;
};

}  // namespace kolo
