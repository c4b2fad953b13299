// Writes a Chrome/Perfetto trace of one step.
#pragma once

#include <string>

#include <kolo/core/training/hook.h>

namespace kolo::models {

/// Traces the third run of the session, or its last if it has fewer: each of the first three is traced, the
/// latest kept.
class TraceHook : public SessionRunHook {
 public:
  explicit TraceHook(std::string file) : file_(std::move(file)) {}
  SessionRunArgs before_run(RunContext& context) override;
  void after_run(RunContext& context, const RunValues& values) override;

 private:
  std::string file_;
  int runs_ = 0;
};

}  // namespace kolo::models
