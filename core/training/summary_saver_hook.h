// The hook that writes a graph's summaries (core/ops/summaries.h) for TensorBoard.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <kolo/core/summary/summary_writer.h>
#include <kolo/core/training/hook.h>
#include <kolo/core/training/hooks.h>

namespace kolo {

/// When SummarySaverHook saves, and through which writer.
struct SummarySaverOptions {
  std::shared_ptr<SummaryWriter> summary_writer = nullptr;
  std::optional<std::int64_t> save_steps = {};  // steps between summaries, or
  std::optional<double> save_secs = {};         // seconds
  Output summary_op = {};  // default: what the graph's collection of summaries holds when the hook begins
};

/// Writes the graph and a session's start, then the summaries of the first run and of each that is due, at
/// the step after that run. Only those runs fetch them, and must be fed what they need. For the chief alone.
class SummarySaverHook : public SessionRunHook {
 public:
  /// Throws InvalidArgumentError unless there are a writer and exactly one of save_steps and save_secs.
  explicit SummarySaverHook(SummarySaverOptions options);

  /// Throws FailedPreconditionError `Global step should be created to use SummarySaverHook.`
  void begin(Graph& graph) override;
  SessionRunArgs before_run(RunContext& context) override;
  void after_run(RunContext& context, const RunValues& values) override;
  void end(Session& session) override;

 private:
  SummarySaverOptions options_;
  StepTimer timer_;
  Output summaries_;
  bool has_run_ = false;
  bool is_due_ = false;
};

}  // namespace kolo
