// A client's session as the master keeps it: its graph, where its nodes are, and its steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/master/master.h>
#include <kolo/core/cluster/master/master_step.h>
#include <kolo/core/cluster/master/session_placer.h>
#include <kolo/core/cluster/master/step_plans.h>
#include <kolo/core/cluster/master/task_watches.h>
#include <kolo/core/cluster/worker/partition.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/runtime/shards.h>

namespace kolo::detail {

/// What the sessions of one master share; outlives them.
struct MasterEnvironment {
  std::string task;               // the own one
  std::string target;             // grpc://…
  std::uint64_t incarnation = 0;  // of this process, see TaskProcess
  std::shared_ptr<Peers> peers;
  RunPartHere run_here;
  TaskWatches* watches = nullptr;
  StepKeeper* keeper = nullptr;
  std::chrono::milliseconds stall_warning{0};  // 0: never
};

struct MasterSessionOptions {
  std::string handle;
  std::string client;         // who made it, for messages
  bool in_process = false;    // the client lives in this process
  SessionConfig config = {};  // the server's and the client's
};

/// Any thread. All but close() throw FailedPreconditionError `Session is closed.` once it is.
class MasterSession : public std::enable_shared_from_this<MasterSession> {
 public:
  using Clock = std::chrono::steady_clock;
  /// tasks: those of the session, by name, as they are now.
  MasterSession(const MasterEnvironment& environment, MasterSessionOptions options,
                std::map<std::string, TaskStatus> tasks);

  const MasterSessionOptions& options() const { return options_; }
  const std::vector<DeviceAttributes>& devices() const { return placer_.devices(); }

  /// Opens a worker session on each task and watches them; where that fails on one, on none.
  void open(const Deadline& deadline);
  std::int64_t extend(std::int64_t version, const GraphDef& nodes) KOLO_EXCLUDES(mutex_);
  StepResult run(const RunStepRequest& request, const Deadline& deadline) KOLO_EXCLUDES(mutex_);
  std::int64_t make_callable(const StepNames& names) KOLO_EXCLUDES(mutex_);
  void release_callable(std::int64_t callable) KOLO_EXCLUDES(mutex_);

  // Of variables by name, see Master.
  void get_variables(const std::vector<std::string>& names,
                     const std::function<void(std::size_t, Tensor)>& on_value, const Deadline& deadline);
  void set_variables(const std::vector<std::string>& names, const std::function<Tensor(std::size_t)>& value,
                     const Deadline& deadline);
  std::vector<bool> are_initialized(const std::vector<std::string>& names, const Deadline& deadline);

  // See RemoteSession.
  std::vector<WrittenShard> write_shards(ShardPlace place, const std::vector<SavedVariable>& variables,
                                         const Deadline& deadline);
  void read_shards(const std::vector<SavedVariable>& variables, const Deadline& deadline);
  std::map<std::string, std::uint64_t> random_positions(const Deadline& deadline) KOLO_EXCLUDES(mutex_);
  void set_random_positions(const std::map<std::string, std::uint64_t>& positions, const Deadline& deadline)
      KOLO_EXCLUDES(mutex_);

  /// Cancels the steps and waits for all calls; closes the session on its tasks. Idempotent.
  void close(const Deadline& deadline) KOLO_EXCLUDES(mutex_);
  /// Returns when no call is under way, or at `until`.
  void wait_for_calls(Clock::time_point until) KOLO_EXCLUDES(mutex_);
  /// A task is away: steps that need it end. Does not wait.
  void lose(const std::string& task, const std::exception_ptr& why) KOLO_EXCLUDES(mutex_);

  std::shared_ptr<Call> watch(std::function<void(std::exception_ptr)> ended) KOLO_EXCLUDES(mutex_);
  /// How long nobody has called or watched it.
  Clock::duration idle() KOLO_EXCLUDES(mutex_);

 private:
  class Use;
  class Watcher;
  struct LocatedVariable {
    std::string task;
    VariableKey key;
  };

  StepNames names_of(const RunStepRequest& request) KOLO_EXCLUDES(mutex_);
  std::shared_ptr<StepPlan> plan_for(const StepRequest& request, const Deadline& deadline,
                                     std::vector<std::string>& lines);
  std::shared_ptr<StepPlan> make_plan(const StepRequest& request, const Deadline& deadline,
                                      std::vector<std::string>& lines);
  StepResult run_plan(const StepPlan& plan, const RunStepRequest& request, const StepRequest& resolved,
                      const Deadline& deadline) KOLO_EXCLUDES(mutex_);
  /// Steps of which a task may drop what it still keeps.
  using StepsOver = std::map<std::string, std::vector<std::int64_t>>;
  /// over: is filled with those that the step's tasks have not been told of.
  std::shared_ptr<MasterStep> begin_step(const StepPlan& plan, const Deadline& deadline, StepsOver& over)
      KOLO_EXCLUDES(mutex_);
  void end_step(const StepPlan& plan, const std::shared_ptr<MasterStep>& step) KOLO_EXCLUDES(mutex_);
  /// fetches: how many values the step must give.
  StepResult joined(const StepPlan& plan, std::vector<PartResult> results, std::size_t fetches) const;
  /// Throws unless the task is what it was when the session was made.
  void check_task(const std::string& task, const Deadline& deadline) KOLO_EXCLUDES(mutex_);
  void check_whole() KOLO_EXCLUDES(mutex_);
  void mark_lost(const std::string& task, std::int64_t step) KOLO_EXCLUDES(mutex_);
  std::vector<LocatedVariable> locate(const std::vector<std::string>& names, const Deadline& deadline);
  /// Places among `variables`, by task.
  using ByTask = std::map<std::string, std::vector<std::size_t>>;
  /// call(its place among the tasks, task, worker): for all at once; returns when all have ended. Throws what
  /// one did, as the task's.
  void on_tasks(const ByTask& tasks,
                const std::function<void(std::size_t, const std::string&, Worker&)>& call) const;
  static bool has_random_ops(const GraphDef& graph);
  /// Before the first part with random ops on the task: they start where they were set to.
  void start_random_ops(const std::string& task, Worker& worker, const Deadline& deadline)
      KOLO_EXCLUDES(mutex_);
  /// call: with the keys of each run of variables that lie on one task, in order; first: the place of the
  /// first one.
  void for_each_task(const std::vector<LocatedVariable>& variables,
                     const std::function<void(Worker& worker, const std::vector<VariableKey>& keys,
                                              std::size_t first)>& call);

  const MasterEnvironment& environment_;
  const MasterSessionOptions options_;
  const std::map<std::string, std::uint64_t> incarnations_;  // by task
  SessionPlacer placer_;
  Graph graph_;
  Mutex extend_mutex_;
  StepPlans plans_;

  std::stop_source closing_;  // ends what calls wait for
  Mutex mutex_;
  CondVar idle_;
  bool closed_ KOLO_GUARDED_BY(mutex_) = false;
  bool gone_ KOLO_GUARDED_BY(mutex_) = false;  // from its tasks, too
  std::int64_t version_ KOLO_GUARDED_BY(mutex_) = 0;
  int calls_ KOLO_GUARDED_BY(mutex_) = 0;  // under way
  Clock::time_point last_sign_ KOLO_GUARDED_BY(mutex_) = Clock::now();
  std::int64_t last_step_ KOLO_GUARDED_BY(mutex_) = 0;
  std::set<std::shared_ptr<MasterStep>> steps_ KOLO_GUARDED_BY(mutex_);
  StepsOver over_ KOLO_GUARDED_BY(mutex_);    // by task
  std::string lost_ KOLO_GUARDED_BY(mutex_);  // why later runs cannot be; "" while the session is whole
  std::map<std::string, std::uint64_t> random_starts_ KOLO_GUARDED_BY(mutex_);  // as they were set
  std::set<std::string> random_tasks_ KOLO_GUARDED_BY(mutex_);  // that have random ops, and know the starts
  std::set<std::string> random_being_told_ KOLO_GUARDED_BY(mutex_);
  CondVar random_told_;
  std::int64_t last_callable_ KOLO_GUARDED_BY(mutex_) = 0;
  std::map<std::int64_t, StepNames> callables_ KOLO_GUARDED_BY(mutex_);
  std::set<std::shared_ptr<Watcher>> watchers_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
