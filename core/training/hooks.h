// The hooks that every training has: one saves checkpoints, one ends it at a global step, one where its loss
// is no number any more.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/training/global_step.h>
#include <kolo/core/training/hook.h>
#include <kolo/core/training/saver.h>
#include <kolo/core/training/scaffold.h>

namespace kolo {

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

}  // namespace kolo
