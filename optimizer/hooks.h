// Hooks of trainings on several ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/engine/process_set.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/training/hook.h>

namespace kolo {

// Equal variables on all ranks before the first step.

/// Gives the variables of this session root's values, bit for bit; they count as initialised then.
/// Collective, between runs: every rank calls it with variables of the same names, types and shapes, in any
/// order. Throws on every rank: InvalidArgumentError `root rank <k> is outside the process set of <R> ranks`,
/// `Mismatched root ranks for variables: …`, `Mismatched data types for <name>: …` or `Mismatched shapes for
/// <name>: rank 0 has [17], rank 1 has [18]`; FailedPreconditionError naming the variables that some ranks
/// lack, or `Attempting to use uninitialized value <name>` if root has no value. Nothing is changed then.
/// With a process set all this is among its ranks (root: the job's number of one of them); on a rank outside
/// it nothing is done.
void broadcast_variables(Session& session, std::span<const Variable> variables, int root,
                         const ProcessSet& set = {});

/// The same for all global variables of the session's graph that are not trainable: an optimizer's slots, its
/// counters, the global step.
void broadcast_optimizer_state(Session& session, int root, const ProcessSet& set = {});

/// Broadcasts all global variables, slots and the global step too, when the session has been made; but for
/// those that are each rank's own (core/training/rank_state.h).
class BroadcastGlobalVariablesHook : public SessionRunHook {
 public:
  explicit BroadcastGlobalVariablesHook(int root, const ProcessSet& set = {}) : root_(root), set_(set) {}
  void after_create_session(Session& session) override;

 private:
  int root_;
  ProcessSet set_;
};

// Metrics of all ranks' samples instead of one rank's.

using Metrics = std::map<std::string, double>;

/// Each metric's average over the ranks: weighted by `samples`, the number of samples that this rank's values
/// are of, where it is given, else plain. Collective. Throws InvalidArgumentError, on every rank, where the
/// ranks' names differ, or some give their samples and others do not. NaN where all ranks have 0 samples.
Metrics average_metrics(const Metrics& metrics, std::optional<double> samples = {});

/// When MetricAverageHook averages.
struct MetricAverageOptions {
  std::map<std::string, Output> metrics;  // scalars, f32 or f64; evaluated in every run
  Output samples = {};  // how many samples a run's metrics are of, a scalar; none: as many in each
  std::int64_t steps_per_epoch = 0;  // runs, positive, the same on all ranks
  // Called on every rank when an epoch, from 1, is over. None: rank 0 logs the averages.
  std::function<void(std::int64_t epoch, const Metrics& averages)> on_epoch = nullptr;
};

/// Averages metrics over the runs of an epoch and over the ranks at its end, weighted by sample counts where
/// they are given. At the end of the session the part of an epoch that is left counts as one. The hook stands
/// at the same place on every rank, and all ranks make the same number of runs.
/// The thread that runs the session.
class MetricAverageHook : public SessionRunHook {
 public:
  /// Throws InvalidArgumentError without metrics, or for steps_per_epoch < 1.
  explicit MetricAverageHook(MetricAverageOptions options);

  SessionRunArgs before_run(RunContext& context) override;
  void after_run(RunContext& context, const RunValues& values) override;
  void end(Session& session) override;

 private:
  void finish_epoch();

  MetricAverageOptions options_;
  std::int64_t runs_ = 0;  // of this epoch
  std::int64_t epoch_ = 0;
  double samples_ = 0;
  Metrics sums_;  // of value · samples
};

}  // namespace kolo
