// Hooks that look at a training from outside now and then: they evaluate it, stop it where it does not get
// better, and keep its best checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <kolo/core/summary/summary_writer.h>
#include <kolo/core/training/hook.h>
#include <kolo/core/training/hooks.h>
#include <kolo/core/training/saver.h>

namespace kolo {

/// When an EvaluationHook evaluates.
struct EvaluationOptions {
  /// Metrics by name, from the session as it is between two steps. With several ranks all call it at the same
  /// steps, so it may use collectives; for a hook of the chief alone it may not.
  std::function<std::map<std::string, double>(Session& session)> evaluate = {};
  std::int64_t every_n_steps = 1000;                        // after step N, 2N, …, and at the end
  std::shared_ptr<SummaryWriter> summary_writer = nullptr;  // gets the metrics as curves
};

/// Evaluates, and logs `Evaluation at step 2000: accuracy = 0.97, loss = 0.1`. The hooks below listen to one:
/// give it first in the list.
class EvaluationHook : public SessionRunHook {
 public:
  /// Throws InvalidArgumentError without a function, and for every_n_steps below 1.
  explicit EvaluationHook(EvaluationOptions options);

  struct Result {
    std::int64_t step = 0;
    std::map<std::string, double> metrics;
  };
  /// The last one; nothing before the first.
  const std::optional<Result>& last() const { return last_; }
  /// Whether it evaluates after the next step.
  bool is_due_next() const { return (step_ + 1) % options_.every_n_steps == 0; }

  /// Throws FailedPreconditionError `Global step should be created to use EvaluationHook.`
  void begin(Graph& graph) override;
  void after_create_session(Session& session) override;
  void after_run(RunContext& context, const RunValues& values) override;
  void end(Session& session) override;

 private:
  void evaluate(Session& session, std::int64_t step);

  EvaluationOptions options_;
  Variable global_step_;
  std::int64_t step_ = 0;
  std::optional<Result> last_;
};

/// Which result counts, and in which direction it improves.
struct MetricOptions {
  std::string metric = "loss";
  bool larger_is_better = false;
};

/// The best value of one metric of an EvaluationHook so far. Threads as SessionRunHook.
class BestMetric {
 public:
  BestMetric(std::shared_ptr<const EvaluationHook> evaluation, MetricOptions options);

  enum class News { none, better, not_better };
  /// Of the last evaluation, once. Throws NotFoundError for a metric that it has not.
  News take();
  std::int64_t step() const { return step_; }            // of the last evaluation
  std::int64_t best_step() const { return best_step_; }  // of the best one; of the first one before
  double best() const { return best_; }

 private:
  std::shared_ptr<const EvaluationHook> evaluation_;
  MetricOptions options_;
  std::optional<std::int64_t> seen_;
  std::int64_t step_ = 0, best_step_ = 0;
  double best_ = 0;
};

/// When EarlyStoppingHook ends a training.
struct EarlyStoppingHookOptions {
  MetricOptions metric = {};
  std::int64_t max_steps_without_improvement = 0;
};

/// Asks for the stop when a metric has not become better for so many steps.
class EarlyStoppingHook : public SessionRunHook {
 public:
  EarlyStoppingHook(std::shared_ptr<const EvaluationHook> evaluation, EarlyStoppingHookOptions options);
  void after_run(RunContext& context, const RunValues& values) override;

 private:
  BestMetric best_;
  std::int64_t most_steps_;
};

/// What BestCheckpointHook keeps, and where.
struct BestCheckpointOptions {
  std::string checkpoint_dir = {};  // made where it is missing; not the training's own
  MetricOptions metric = {};
  int max_to_keep = 1;
};

/// Saves `best.ckpt-<step>` when a metric is better than ever. For the chief alone, behind the
/// EvaluationHook. State that is spread over the ranks (rank_state.h) is put together for each evaluation, as
/// long as each run makes a step.
class BestCheckpointHook : public SessionRunHook {
 public:
  /// Throws InvalidArgumentError without a checkpoint_dir.
  BestCheckpointHook(std::shared_ptr<const EvaluationHook> evaluation, BestCheckpointOptions options);
  void after_create_session(Session& session) override;
  SessionRunArgs before_run(RunContext& context) override;
  void after_run(RunContext& context, const RunValues& values) override;
  bool saves() const override { return true; }
  void save(Session& session, const GatheredState* gathered) override;

 private:
  std::shared_ptr<const EvaluationHook> evaluation_;
  BestMetric best_;
  BestCheckpointOptions options_;
  std::unique_ptr<Saver> saver_;
};

}  // namespace kolo
