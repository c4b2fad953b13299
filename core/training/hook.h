// What a monitored session calls around its runs: how stopping, saving, logging, broadcasting join a training
// loop without the loop knowing. A hook is one file: a class derived from SessionRunHook.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/coordinator.h>

namespace kolo {

class GatheredState;

/// What one run is asked for. A hook's wishes are merged with the caller's and the other hooks' into one run.
struct SessionRunArgs {
  std::vector<Fetch> fetches;
  Feeds feeds;
  RunOptions options = {};  // merged by the maximum of each number; any of the stop tokens stops the run
};

/// What a hook gets back: the results of its own fetches, in their order.
struct RunValues {
  std::vector<Tensor> results;
  const StepTrace* trace = nullptr;  // set if anybody asked for a trace level; valid during after_run
  /// What all ranks have put together (rank_state.h): set after a step for which a save was announced.
  const GatheredState* gathered = nullptr;
};

/// The run that is about to be made, or has just been made. Lives as long as that run,
/// for the thread that calls the hooks.
class RunContext {
 public:
  RunContext(Session& session, const SessionRunArgs& original_args,
             std::optional<std::int64_t> global_step = {})
      : session_(&session), original_args_(&original_args), global_step_(global_step) {}

  Session& session() const { return *session_; }
  /// What the caller of run() asked for, without the hooks' wishes.
  const SessionRunArgs& original_args() const { return *original_args_; }

  /// As the monitored session last read it: after the run before in before_run, where other workers of a
  /// cluster may have gone on since; after this one in after_run. Nothing for a graph without a global step.
  std::optional<std::int64_t> global_step() const { return global_step_; }
  /// For the session, between the two.
  void set_global_step(std::int64_t step) { global_step_ = step; }

  /// Ends the training. Alone: after this run, whose results are still returned. With several ranks: all stop
  /// after the same step, the next one that this rank enters; that is this run's when asked in before_run.
  void request_stop() { stop_requested_ = true; }
  bool stop_requested() const { return stop_requested_; }
  /// In before_run, for a hook that knows that the next training step is the last and will ask for the stop
  /// in after_run: tells the other ranks with that very step, so that none enters another one. Nothing
  /// happens if this run makes no training step, but the next one then carries it.
  void announce_last_step() { last_step_announced_ = true; }
  bool last_step_announced() const { return last_step_announced_; }
  /// In before_run, for a hook that will save a checkpoint after this run: where state is spread over the
  /// ranks (rank_state.h) all learn of it with this run's training step and put the state together before
  /// after_run. Without a training step in the run nothing happens. Elsewhere it is not needed.
  void announce_save() { save_announced_ = true; }
  bool save_announced() const { return save_announced_; }

 private:
  Session* session_;
  const SessionRunArgs* original_args_;
  std::optional<std::int64_t> global_step_;
  bool stop_requested_ = false;
  bool last_step_announced_ = false;
  bool save_announced_ = false;
};

/// Called by one monitored session, from the thread that uses it, in the order of its hooks. With several
/// ranks each rank has its own hooks; those that communicate stand at the same place on every rank. What a
/// hook throws ends the training as an error of the step does.
class SessionRunHook {
 public:
  virtual ~SessionRunHook() = default;
  /// Once, before the graph is finalized: the last chance to add nodes.
  virtual void begin(Graph& /*graph*/) {}
  /// Right before after_create_session() on the rank that has restored the session from `checkpoint`, a path;
  /// not called where the variables begin anew.
  virtual void after_restore(Session& /*session*/, const std::string& /*checkpoint*/) {}
  /// The variables have their restored or first values, the same on all ranks. Again after a recovery.
  virtual void after_create_session(Session& /*session*/) {}
  /// What the session calls: for hooks that start threads. coordinator: of this session, until a recovery or
  /// the end, when its threads are joined.
  virtual void after_create_session(Session& session, Coordinator& /*coordinator*/) {
    after_create_session(session);
  }
  virtual SessionRunArgs before_run(RunContext& /*context*/) { return {}; }
  virtual void after_run(RunContext& /*context*/, const RunValues& /*values*/) {}
  /// In place of after_run(), where the run threw `error`: the caller gets that, or what a hook throws here
  /// to say more. The other ranks know of the failure already. A hook that has cancelled the run by its stop
  /// token (Code::cancelled) may ask `context` for the stop: with one rank the caller gets empty tensors
  /// then, and the training ends as it does after a signal. made: the caller's wishes with those of all
  /// hooks.
  virtual void after_failure(RunContext& /*context*/, const SessionRunArgs& /*made*/,
                             const Error& /*error*/) {}
  /// Whether save() writes checkpoints: state that is spread over the ranks (rank_state.h) is put together
  /// for it where a hook of rank 0 does.
  virtual bool saves() const { return false; }
  /// Right behind after_create_session(), and right before end(). gathered: what all ranks have put together;
  /// nullptr where their state is not spread, or no hook of rank 0 saves.
  virtual void save(Session& /*session*/, const GatheredState* /*gathered*/) {}
  /// Before the session closes; not called after an error.
  virtual void end(Session& /*session*/) {}
};

}  // namespace kolo
