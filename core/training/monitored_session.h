// Sessions that recover, with hooks around their steps.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/runtime/session.h>
#include <kolo/core/training/hook.h>
#include <kolo/core/training/monitored_session_options.h>

namespace kolo {

// The session of a training loop: restores or initialises, runs, saves, and ends on every rank in the same
// step.

/// `while (!sess.should_stop()) sess.run(train_op, feeds);` on every rank alike. Rank 0 alone reads and
/// writes checkpoint_dir; its variables, random positions and saved states go to all ranks. One thread.
///
/// The ranks end together: after a stop that a hook, SIGTERM or SIGUSR1 asks for on any rank, at the end of
/// the data of any rank (OutOfRangeError from a run, or close() while the others go on; the step that the
/// others were in is applied nowhere), and after an error of any rank: AbortedError `rank <r> failed in step
/// <s>: <text>` on the others. Only the state of a completed step is ever saved, and nothing after an error.
///
/// One rank recovers from AbortedError and UnavailableError of a run: a new session, restored from the newest
/// checkpoint, repeats it; not with `recovers` off.
///
/// On a cluster each worker has one of its own session, and nothing is agreed on, compared or broadcast. It
/// recovers from the loss of a task alike, and waits until the chief has given the variables values: logs
/// `Waiting for model to be ready.`; throws DeadlineExceededError `Session was not ready after waiting <n>
/// secs.`
///
/// Hooks may have threads beside the loop: the first error of one of them (see Coordinator) cancels the run
/// under way, and is thrown by run(), should_stop() or close() as if it were the run's. Threads are joined
/// before a recovery, and after the hooks' end().
class MonitoredTrainingSession {
 public:
  /// Calls every hook's begin(), finalizes the graph, makes the session, compares variables and training
  /// steps among the ranks, restores the newest intact checkpoint or runs the initialisers, broadcasts, calls
  /// after_create_session(). Collective. Throws on every rank what fails on any: FailedPreconditionError
  /// `Ranks disagree on the …`, or where a launcher has started several ranks and init() was not called,
  /// DataLossError if there are checkpoints but none is intact, what Saver and the hooks throw (with saving
  /// on, CheckpointSaverHook's: another training writes checkpoint_dir), InvalidArgumentError for options.
  explicit MonitoredTrainingSession(Graph& graph, MonitoredTrainingSessionOptions options = {});
  /// close(), but an error is logged instead of thrown. While an exception leaves its scope: tells the other
  /// ranks of the failure, and saves nothing.
  ~MonitoredTrainingSession();
  MonitoredTrainingSession(const MonitoredTrainingSession&) = delete;
  MonitoredTrainingSession& operator=(const MonitoredTrainingSession&) = delete;

  /// One run of the session with the hooks around it. Results as Session::run gives them; at the end of the
  /// data they are empty tensors, and should_stop() is true. Throws FailedPreconditionError `Run called even
  /// after should_stop requested.`, and what the run or a hook throws; with several ranks that ends the
  /// training everywhere.
  /// options, metadata: of the session's run; what hooks wish for is added.
  std::vector<Tensor> run(const std::vector<Fetch>& fetches, const Feeds& feeds = {},
                          const RunOptions& options = {}, RunMetadata* metadata = nullptr);
  /// Also runs the operations `Targets{…}` for their effect; they have no results.
  template <std::same_as<Targets> T>  // not by conversion: {.timeout_in_ms = 5} is RunOptions
  std::vector<Tensor> run(const std::vector<Fetch>& fetches, const Feeds& feeds, const T& targets,
                          const RunOptions& options = {}, RunMetadata* metadata = nullptr) {
    std::vector<Fetch> all = fetches;
    all.insert(all.end(), targets.begin(), targets.end());
    std::vector<Tensor> results = run(all, feeds, options, metadata);
    results.resize(fetches.size());
    return results;
  }
  Tensor run(Output fetch, const Feeds& feeds = {}) { return run(std::vector<Fetch>{fetch}, feeds)[0]; }
  void run(Operation target, const Feeds& feeds = {}) { run(std::vector<Fetch>{target}, feeds); }

  /// By name, as Session::run takes it.
  Tensor run(const char* name, const Feeds& feeds = {}) { return run(std::vector<Fetch>{name}, feeds)[0]; }
  template <std::same_as<std::string> T>  // not by conversion: {"x:0", "y:0"} is a list of two
  Tensor run(const T& name, const Feeds& feeds = {}) {
    return run(std::vector<Fetch>{name}, feeds)[0];
  }
  /// See FetchStructure.
  template <NestedFetches T>
  typename FetchStructure<T>::Result run(const T& fetches, const Feeds& feeds = {},
                                         const RunOptions& options = {}, RunMetadata* metadata = nullptr) {
    std::vector<Fetch> list;
    FetchStructure<T>::flatten(fetches, list);
    const std::vector<Tensor> results = run(list, feeds, options, metadata);
    const Tensor* next = results.data();
    return FetchStructure<T>::rebuild(fetches, next);
  }

  /// True on all ranks after the same step. Throws the error of a thread.
  bool should_stop();
  /// The training ended because of a signal, or because another rank asked, not because a hook of this rank
  /// did. The same on all ranks if their hooks ask alike.
  bool stopped_on_request() const;
  /// Of the last completed step; −1 without a global step in the graph.
  std::int64_t global_step() const;
  /// Valid as long as this object; after a recovery it is the session made anew.
  Session& session();

  /// Calls every hook's end() (the last step is saved there) and closes the session. Throws what they throw,
  /// the error of a thread (before end(), if it is there before), and FailedPreconditionError `Session is
  /// already closed.` the second time.
  void close();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Monitored sessions that do nothing by themselves but restore or initialise, and wait: no checkpoints, no
// summaries but by the hooks that they are given.

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
