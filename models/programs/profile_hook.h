// Measures where the time of training steps goes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <kolo/core/training/hook.h>
#include <kolo/models/programs/step_profile.h>

namespace kolo::models {

/// Traces `steps` runs of the session, from the third on, and tells the profile when they are done, or at the
/// end where there were fewer. Measures the processor before that, which takes a second.
class ProfileHook : public SessionRunHook {
 public:
  using Tell = std::function<void(const Profile& profile)>;

  ProfileHook(std::int64_t steps, Tell tell) : steps_(steps), tell_(std::move(tell)) {}
  void begin(Graph& graph) override { graph_ = &graph; }
  SessionRunArgs before_run(RunContext& context) override;
  void after_run(RunContext& context, const RunValues& values) override;
  void end(Session& session) override;

 private:
  bool measures() const;
  void finish();

  std::int64_t steps_;
  Tell tell_;
  const Graph* graph_ = nullptr;
  std::int64_t runs_ = 0;
  std::map<std::string, NodeWork> work_;
  StepProfiler profiler_;
  bool told_ = false;
};

}  // namespace kolo::models
