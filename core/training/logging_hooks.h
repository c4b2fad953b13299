// Hooks that tell how a training goes on: values of its tensors, and its steps per second.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/summary/summary_writer.h>
#include <kolo/core/training/hook.h>
#include <kolo/core/training/hooks.h>

namespace kolo {

/// A tensor with the name that it is logged under.
struct LoggedTensor {
  std::string tag;
  Output tensor;
};

/// When LoggingTensorHook logs, and how.
struct LoggingTensorOptions {
  std::optional<std::int64_t> every_n_iter = {};  // runs of this hook's session, whatever the global step
  std::optional<double> every_n_secs = {};        // instead
  bool at_end = false;                            // at the end, too; alone: then only
  /// The line for the values, in the order of the tensors; empty: `a = 1.0, b = 2.0`.
  std::function<std::string(const std::vector<std::pair<std::string, Tensor>>&)> formatter = {};
};

/// Logs `a = 1.0, b = [2.0 3.0]` in the first run, and again, with ` (0.123 sec)` since the last time, when
/// it is due. The tensors are fetched in these runs only, which then must be fed what they need.
class LoggingTensorHook : public SessionRunHook {
 public:
  /// Logged in this order. Throws InvalidArgumentError `either at_end and/or exactly one of every_n_iter and
  /// every_n_secs must be provided.`, `invalid every_n_iter=<n>.`
  LoggingTensorHook(std::vector<LoggedTensor> tensors, LoggingTensorOptions options);
  /// The tensors under their own names, "scope/x:0".
  LoggingTensorHook(const Outputs& tensors, LoggingTensorOptions options);

  /// Counts anew. Throws InvalidArgumentError for a tensor of another graph.
  void begin(Graph& graph) override;
  SessionRunArgs before_run(RunContext& context) override;
  void after_run(RunContext& context, const RunValues& values) override;
  void end(Session& session) override;

 private:
  std::vector<Fetch> fetches() const;
  void write(const std::vector<Tensor>& results);

  std::vector<LoggedTensor> tensors_;
  LoggingTensorOptions options_;
  std::optional<StepTimer> timer_;  // none: at the end only
  std::int64_t runs_ = 0;
  std::optional<std::chrono::steady_clock::time_point> last_;
  bool is_due_ = false;
};

/// "1.0", "[1.0 2.0]", "[[1 2] [3 4]]": as LoggingTensorHook writes a tensor; "..." stands for what comes
/// after the first 100 elements.
std::string logged_text(const Tensor& value);

/// When StepCounterHook reports steps per second, and where.
struct StepCounterOptions {
  std::optional<std::int64_t> every_n_steps = {};  // default 100, unless seconds are given
  std::optional<double> every_n_secs = {};
  std::shared_ptr<SummaryWriter> summary_writer = nullptr;  // gets the same number as a curve
};

/// Logs `global_step/sec: <number>` when it is due, the first time only starts the clock. Warns, at most five
/// times, of a run after which the global step is what it was.
class StepCounterHook : public SessionRunHook {
 public:
  /// Throws InvalidArgumentError `exactly one of every_n_steps and every_n_secs should be provided.`
  explicit StepCounterHook(StepCounterOptions options = {});

  /// Throws FailedPreconditionError `Global step should be created to use StepCounterHook.`
  void begin(Graph& graph) override;
  void after_run(RunContext& context, const RunValues& values) override;
  void end(Session& session) override;

 private:
  StepCounterOptions options_;
  StepTimer timer_;
  std::string tag_;
  std::chrono::steady_clock::time_point last_time_;
  std::optional<std::int64_t> step_of_last_run_;
  int warnings_left_ = 5;
};

}  // namespace kolo
