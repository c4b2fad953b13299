// Monitored sessions that do nothing by themselves but restore or initialise, and wait: no checkpoints, no
// summaries but by the hooks that they are given.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kolo/core/training/monitored_session.h>

namespace kolo {

/// A session that gives the variables their values: from the newest checkpoint of a folder, from one file, or
/// by the scaffold.
struct ChiefSessionCreator {
  Scaffold scaffold = {};
  std::string master = {};
  SessionConfig config = SessionConfig();
  std::string checkpoint_dir = {};
  std::string checkpoint_filename_with_path = {};
};

/// A session of a cluster that waits until the chief has done so.
struct WorkerSessionCreator {
  Scaffold scaffold = {};
  std::string master = {};
  SessionConfig config = SessionConfig();
  double max_wait_secs = 7200;
};

using SessionRunHooks = std::vector<std::shared_ptr<SessionRunHook>>;

/// TensorFlow's session of a chief or a worker. Threads as MonitoredTrainingSession.
class MonitoredSession : public MonitoredTrainingSession {
 public:
  /// Throws as MonitoredTrainingSession's constructor.
  explicit MonitoredSession(Graph& graph, ChiefSessionCreator creator = {}, SessionRunHooks hooks = {},
                            double stop_grace_period_secs = 120);
  MonitoredSession(Graph& graph, WorkerSessionCreator creator, SessionRunHooks hooks = {},
                   double stop_grace_period_secs = 120);
};

/// One that does not recover: AbortedError and UnavailableError are thrown, as all others.
class SingularMonitoredSession : public MonitoredTrainingSession {
 public:
  /// Throws as MonitoredTrainingSession's constructor.
  explicit SingularMonitoredSession(Graph& graph, ChiefSessionCreator creator = {},
                                    SessionRunHooks hooks = {}, double stop_grace_period_secs = 120);
};

}  // namespace kolo
