// What a monitored session is made with.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/runtime/config.h>
#include <kolo/core/training/hook.h>
#include <kolo/core/training/hooks.h>
#include <kolo/core/training/initial_weights.h>
#include <kolo/core/training/scaffold.h>

namespace kolo {

/// How a monitored session starts, saves and stops. Steps are global steps.
struct MonitoredTrainingSessionOptions {
  std::string checkpoint_dir = {};                         // rank 0's; "" restores and saves nothing
  std::optional<double> save_checkpoint_secs = {};         // default 600, unless steps are given; 0: never
  std::optional<std::int64_t> save_checkpoint_steps = {};  // instead of seconds; 0: never
  int max_to_keep = 5;                                     // checkpoints; 0: all
  std::string summary_dir = {};                            // rank 0's, for TensorBoard; "" writes nothing
  std::optional<std::int64_t> save_summaries_steps = {};   // default 100, unless seconds are given; 0: never
  std::optional<double> save_summaries_secs = {};          // instead of steps; 0: never
  std::int64_t log_step_count_steps =
      100;                                 // with summary_dir: between two logs of steps per second; 0: never
  SessionConfig config = SessionConfig();  // in full: with {} g++ 12 warns of an uninitialised string
  std::vector<std::shared_ptr<SessionRunHook>> chief_only_hooks =
      {};  // called on rank 0 alone, before the others
  std::vector<std::shared_ptr<SessionRunHook>> hooks = {};
  std::vector<SavedState> saved_state =
      {};                               // saved with each checkpoint, restored, and made equal on all ranks
  InitialWeights initial_weights = {};  // rank 0's; of a training that finds no checkpoint
  Scaffold scaffold = {};               // how variables get their values, where that is not as ever
  std::string checkpoint_filename_with_path =
      {};                // one checkpoint, which is restored, instead of the newest of checkpoint_dir
  bool recovers = true;  // from AbortedError and UnavailableError; false: they end the training as others do
  std::optional<std::int64_t> check_drift_steps =
      {};  // between two comparisons of the ranks' weights; default KOLO_CHECK_DRIFT, else 100; 0: never
  double stop_grace_period_secs =
      120;  // for threads of the coordinator to end, before their runs are cancelled

  // Of a training on a cluster (docs/clusters.md), where "rank 0" above is the chief.

  std::string master = {};  // the session's target, this task's own server as a rule; "": this process
  bool is_chief =
      true;  // restores or initialises, and saves; the others wait until all variables have values
  bool adopt =
      false;  // a chief that finds all variables with values goes on from these, and restores nothing
  bool sharded = false;            // each task writes its own variables (SaverOptions)
  double recovery_wait_secs = 30;  // between two looks of those that wait
  double max_wait_secs = 7200;     // that they wait in all
};

}  // namespace kolo
