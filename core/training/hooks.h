// Hooks that come with kolo: what a training does between its steps. hook.h says what a hook is.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/variables.h>
#include <kolo/core/summary/summary_writer.h>
#include <kolo/core/training/global_step.h>
#include <kolo/core/training/hook.h>
#include <kolo/core/training/saver.h>
#include <kolo/core/training/scaffold.h>

namespace kolo {

// The hooks that every training has: one saves checkpoints, one ends it at a global step, one where its loss
// is no number any more.

/// Due at the first question, then `every_steps` steps or `every_secs` seconds after it last fired; never
/// twice for one step. One thread at a time.
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

/// Something outside the graph that belongs to a training's state, such as its position in the data.
struct SavedState {
  std::string name;
  std::function<std::string()> save;                // its value between two steps, as JSON
  std::function<void(const std::string&)> restore;  // takes that value back, as compact JSON
};

/// Told of the checkpoints of a CheckpointSaverHook, in the order of its list. Threads as SessionRunHook.
class CheckpointSaverListener {
 public:
  virtual ~CheckpointSaverListener() = default;
  virtual void begin() {}
  virtual void before_save(Session& /*session*/, std::int64_t /*step*/) {}
  /// True asks for the stop of the training; not for the checkpoint with which it begins.
  virtual bool after_save(Session& /*session*/, std::int64_t /*step*/) { return false; }
  virtual void end(Session& /*session*/, std::int64_t /*step*/) {}
};

/// When and where a CheckpointSaverHook saves.
struct CheckpointSaverOptions {
  std::string checkpoint_dir;                   // made where it is missing
  std::optional<double> save_secs = {};         // seconds between checkpoints, or
  std::optional<std::int64_t> save_steps = {};  // steps between them
  std::string checkpoint_basename = kCheckpointBasename;
  std::shared_ptr<Saver> saver =
      nullptr;  // default: the scaffold's, else over all global variables, keeping 5
  std::optional<Scaffold> scaffold = {};  // instead of a saver
  std::vector<SavedState> saved_state = {};
  std::vector<std::shared_ptr<CheckpointSaverListener>> listeners = {};
};

namespace detail {
class FolderLock;
}

/// Saves when the session is created, unless it was restored from this very checkpoint, after the runs that
/// advance the global step and at which the timer is due, and at the end if the last step was not saved. A
/// step after which a trainable variable holds NaN or infinity is not saved: an error is logged, and what was
/// saved before stays. For the one rank that writes the folder, which is its process's alone from begin() to
/// end(), or until the hook is destroyed. State that is spread over the ranks (rank_state.h) is saved after
/// steps that were announced: where seconds are counted those that begin when the timer is due, where steps
/// are counted the same ones as ever as long as each run makes one.
class CheckpointSaverHook : public SessionRunHook {
 public:
  /// Throws InvalidArgumentError unless exactly one of save_secs and save_steps is given, and `You cannot
  /// provide both saver and scaffold.`
  explicit CheckpointSaverHook(CheckpointSaverOptions options);
  ~CheckpointSaverHook() override;

  /// Finishes or removes what a killed run was writing. Throws FailedPreconditionError `Global step should be
  /// created to use CheckpointSaverHook.`, if checkpoint_dir is a file or cannot be made or written, and if
  /// another process writes it and does not end within 10 s.
  void begin(Graph& graph) override;
  void after_restore(Session& session, const std::string& checkpoint) override;
  void after_create_session(Session& session) override;
  SessionRunArgs before_run(RunContext& context) override;
  void after_run(RunContext& context, const RunValues& values) override;
  bool saves() const override { return true; }
  void save(Session& session, const GatheredState* gathered) override;
  void end(Session& session) override;

 private:
  std::string prefix() const;
  // Whether a listener asks for the stop.
  bool write(Session& session, std::int64_t step, const GatheredState* gathered);

  CheckpointSaverOptions options_;
  std::unique_ptr<detail::FolderLock> lock_;
  std::string restored_;  // the checkpoint, until the session is created
  StepTimer timer_;
  Variable global_step_;
  std::int64_t step_of_last_run_ = 0;
  bool needs_all_ranks_ = false;
};

/// The step after which StopAtStepHook stops.
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

/// What NanTensorHook does about a loss that is not finite.
struct NanTensorOptions {
  bool fail_on_nan_loss = true;  // false: asks for the stop instead, after the step
};

/// Looks at the loss of every run of the session, which therefore must be fed what the loss needs. A loss
/// that is NaN or infinite on any rank fails the step before it updates a variable of that rank:
/// FailedPreconditionError `NaN loss during training.` with the step and the first op whose output is not
/// finite, found by computing the loss once more; the other ranks end in AbortedError `rank <r> failed …`.
/// What is on the disk stays the last good state. Cost per step: the check of the loss, one number as a rule.
///
/// With fail_on_nan_loss = false the step is made and the training asked to stop, without an error. With
/// DynamicLossScale, which skips steps that are not finite, this hook would end what that goes on from.
class NanTensorHook : public SessionRunHook {
 public:
  /// loss: f32|f64 (with fail_on_nan_loss = false any floating type), of any shape.
  explicit NanTensorHook(Output loss, NanTensorOptions options = {}) : loss_(loss), options_(options) {}

  /// Throws InvalidArgumentError for a loss of another type or another graph.
  void begin(Graph& graph) override;
  SessionRunArgs before_run(RunContext& context) override;
  void after_run(RunContext& context, const RunValues& values) override;
  void after_failure(RunContext& context, const SessionRunArgs& made, const Error& error) override;

 private:
  Output loss_;
  NanTensorOptions options_;
  Operation guard_;
};

// Hooks that give a training loop its inputs, let it wait, and take its last values.

/// Feeds what a function returns, which is called before each run.
class FeedFnHook : public SessionRunHook {
 public:
  explicit FeedFnHook(std::function<Feeds()> feed_fn);

  SessionRunArgs before_run(RunContext& context) override;

 private:
  std::function<Feeds()> feed_fn_;
};

/// The first run waits until others, such as the chief of a cluster, have brought the global step so far:
/// looks twice a second, logs `Waiting for global step <n> before starting training.` For 0 and less it never
/// waits.
class GlobalStepWaiterHook : public SessionRunHook {
 public:
  explicit GlobalStepWaiterHook(std::int64_t wait_until_step) : wait_until_step_(wait_until_step) {}

  /// Throws FailedPreconditionError `Global step should be created to use GlobalStepWaiterHook.`
  void begin(Graph& graph) override;
  /// Throws CancelledError when the process is asked to stop.
  SessionRunArgs before_run(RunContext& context) override;

 private:
  std::int64_t wait_until_step_;
  Variable global_step_;
  bool has_waited_ = false;
};

/// Runs fetches once more at the end of the training, and keeps their values.
class FinalOpsHook : public SessionRunHook {
 public:
  explicit FinalOpsHook(std::vector<Fetch> final_ops, Feeds feeds = {});

  /// One for each fetch; none before the end.
  const std::vector<Tensor>& final_ops_values() const { return values_; }

  /// Throws what the run throws. The end of the data there is logged: such ops must not read an input.
  void end(Session& session) override;

 private:
  std::vector<Fetch> final_ops_;
  Feeds feeds_;
  std::vector<Tensor> values_;
};

// Hooks that tell how a training goes on: values of its tensors, and its steps per second.

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

// The hook that writes a graph's summaries (core/ops/summaries.h) for TensorBoard.

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

// The hook that writes down, every so often, when each node of a step ran.

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

// Hooks that look at a training from outside now and then: they evaluate it, stop it where it does not get
// better, and keep its best checkpoint.

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
