// A master's session, as one task has it.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/worker/part.h>
#include <kolo/core/cluster/worker/part_run.h>
#include <kolo/core/cluster/worker/step_exchange.h>
#include <kolo/core/runtime/cancellation.h>

namespace kolo::detail {

/// What a session of a master needs of a task.
struct WorkerSessionRequest {
  std::string session;  // handle: 32 hex digits
  std::string master;   // its task
  SessionConfig config;
  std::uint64_t master_incarnation = 0;  // of the master's process
};

/// What the sessions of a task share; outlives them.
struct TaskState {
  const std::string& task;
  const DeviceSet& devices;
  TaskVariables& variables;
  Containers& containers;
  int intra_op_threads = 1;
  /// How long late requests for a step are told that it is over, and how long a request waits for a part that
  /// does not begin.
  std::chrono::milliseconds remembered{60'000};
};

/// Any thread.
class WorkerSession {
 public:
  WorkerSession(const WorkerSessionRequest& request, const TaskState& task);

  const std::string& master() const { return master_; }
  std::uint64_t master_incarnation() const { return master_incarnation_; }
  TaskVariables& variables() { return own_variables_ ? *own_variables_ : task_.variables; }
  /// 0 where they are the task's.
  std::int64_t own_variable_bytes() { return own_variables_ ? own_variables_->bytes() : 0; }

  /// Throws as Part.
  std::uint64_t add_part(const PartRequest& request) KOLO_EXCLUDES(mutex_);
  /// Throws NotFoundError.
  std::shared_ptr<Part> part(std::uint64_t id) KOLO_EXCLUDES(mutex_);
  void remove_part(std::uint64_t id) KOLO_EXCLUDES(mutex_);

  /// Of a step that is under way or yet to come. Throws ConsequenceError `Step <id> is over`, and
  /// ResourceExhaustedError where too many are yet to come.
  std::shared_ptr<StepExchange> exchange(std::int64_t step) KOLO_EXCLUDES(mutex_);
  /// cancellation: lives until end() has returned. Throws as exchange(), and what has ended the session.
  std::shared_ptr<PartRun> begin(std::int64_t step, std::shared_ptr<Part> part, Peers* peers,
                                 StepCancellation& cancellation) KOLO_EXCLUDES(mutex_);
  /// The task's part of it is over: who still asks for values is told so.
  void end(std::int64_t step) KOLO_EXCLUDES(mutex_);
  /// The step is over everywhere; if it runs here, it is cancelled.
  void forget(std::int64_t step) KOLO_EXCLUDES(mutex_);
  /// Cancels all steps; none begins any more.
  void close(const std::exception_ptr& reason) KOLO_EXCLUDES(mutex_);

  /// Of the random ops that have run here. set_…: those that have not run yet, here or elsewhere, too.
  std::map<std::string, std::uint64_t> random_positions() KOLO_EXCLUDES(random_mutex_);
  void set_random_positions(const std::map<std::string, std::uint64_t>& positions)
      KOLO_EXCLUDES(random_mutex_);

  void append_waits(const std::vector<std::string>& workers, std::vector<TaskStatus::Wait>& waits)
      KOLO_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  struct Step {
    std::shared_ptr<StepExchange> exchange = std::make_shared<StepExchange>();
    Clock::time_point since = Clock::now();
    std::shared_ptr<PartRun> run = nullptr;
    StepCancellation* cancellation = nullptr;
  };

  RandomState& random_state(const std::string& node, std::int64_t op_seed, std::optional<std::int64_t> seed)
      KOLO_EXCLUDES(random_mutex_);
  Step& step_locked(std::int64_t step) KOLO_REQUIRES(mutex_);
  void check_room() KOLO_REQUIRES(mutex_);
  // The caller ends them without the lock.
  std::vector<std::pair<std::int64_t, Step>> take_abandoned() KOLO_REQUIRES(mutex_);
  void note_over(std::int64_t step) KOLO_REQUIRES(mutex_);

  const std::string handle_;
  const std::string master_;
  const std::uint64_t master_incarnation_;
  const SessionConfig config_;
  const TaskState task_;
  const std::unique_ptr<TaskVariables> own_variables_;  // where it is isolated
  const std::unique_ptr<Containers> own_containers_;

  Mutex random_mutex_;
  std::map<std::string, std::unique_ptr<RandomState>> random_states_ KOLO_GUARDED_BY(random_mutex_);
  std::map<std::string, std::uint64_t> random_starts_ KOLO_GUARDED_BY(random_mutex_);

  Mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Part>> parts_ KOLO_GUARDED_BY(mutex_);
  std::uint64_t next_part_ KOLO_GUARDED_BY(mutex_) = 1;
  std::map<std::int64_t, Step> steps_ KOLO_GUARDED_BY(mutex_);
  std::unordered_set<std::int64_t> over_ KOLO_GUARDED_BY(mutex_);
  std::deque<std::pair<Clock::time_point, std::int64_t>> over_since_ KOLO_GUARDED_BY(mutex_);  // the same
  std::exception_ptr closed_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
