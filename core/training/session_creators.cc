#include <kolo/core/training/monitored_session.h>

#include <utility>

namespace kolo {
namespace {

MonitoredTrainingSessionOptions options_of(ChiefSessionCreator creator, SessionRunHooks hooks, double grace) {
  return {.checkpoint_dir = std::move(creator.checkpoint_dir),
          .save_checkpoint_secs = 0,
          .save_checkpoint_steps = 0,
          .config = std::move(creator.config),
          .hooks = std::move(hooks),
          .scaffold = std::move(creator.scaffold),
          .checkpoint_filename_with_path = std::move(creator.checkpoint_filename_with_path),
          .stop_grace_period_secs = grace,
          .master = std::move(creator.master)};
}

MonitoredTrainingSessionOptions options_of(WorkerSessionCreator creator, SessionRunHooks hooks,
                                           double grace) {
  return {.config = std::move(creator.config),
          .hooks = std::move(hooks),
          .scaffold = std::move(creator.scaffold),
          .stop_grace_period_secs = grace,
          .master = std::move(creator.master),
          .is_chief = false,
          .max_wait_secs = creator.max_wait_secs};
}

MonitoredTrainingSessionOptions without_recovery(MonitoredTrainingSessionOptions options) {
  options.recovers = false;
  return options;
}

}  // namespace

MonitoredSession::MonitoredSession(Graph& graph, ChiefSessionCreator creator, SessionRunHooks hooks,
                                   double stop_grace_period_secs)
    : MonitoredTrainingSession(graph,
                               options_of(std::move(creator), std::move(hooks), stop_grace_period_secs)) {}

MonitoredSession::MonitoredSession(Graph& graph, WorkerSessionCreator creator, SessionRunHooks hooks,
                                   double stop_grace_period_secs)
    : MonitoredTrainingSession(graph,
                               options_of(std::move(creator), std::move(hooks), stop_grace_period_secs)) {}

SingularMonitoredSession::SingularMonitoredSession(Graph& graph, ChiefSessionCreator creator,
                                                   SessionRunHooks hooks, double stop_grace_period_secs)
    : MonitoredTrainingSession(
          graph, without_recovery(options_of(std::move(creator), std::move(hooks), stop_grace_period_secs))) {
}

}  // namespace kolo
