// What stands behind LocalWorker.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/cluster/kept_threads.h>
#include <kolo/core/cluster/request_ids.h>
#include <kolo/core/cluster/worker/local_worker.h>
#include <kolo/core/cluster/worker/worker_session.h>
#include <kolo/core/runtime/pools.h>

namespace kolo::detail {

class LocalWorker::Impl {
 public:
  explicit Impl(const LocalWorkerOptions& options);

  const std::string& task() const { return options_.task; }
  void set_peers(Peers& peers) { peers_ = &peers; }
  TaskState state();
  TaskStatus status() KOLO_EXCLUDES(mutex_);

  void add_session(const WorkerSessionRequest& request) KOLO_EXCLUDES(mutex_);
  void remove_session(const std::string& handle) KOLO_EXCLUDES(mutex_);
  /// Handles: of the sessions of that process, or of the task's other ones.
  std::vector<std::string> sessions_of(const TaskProcess& master, bool others) KOLO_EXCLUDES(mutex_);
  /// Throws AbortedError where it is not there, UnavailableError after shutdown().
  std::shared_ptr<WorkerSession> session(const std::string& handle) KOLO_EXCLUDES(mutex_);

  /// Of a request that has not been there yet.
  struct Admitted {
    std::shared_ptr<WorkerSession> session;
    std::shared_ptr<Part> part;
  };
  Admitted admit(const RunPartRequest& request);
  PartResult run(const Admitted& admitted, const RunPartRequest& request, const Deadline& deadline,
                 StepCancellation& cancellation);
  KeptThreads& threads() { return threads_; }

  void check_keys(const std::vector<std::string>& keys) const;
  void drop(const std::vector<std::string>& containers);
  std::shared_ptr<Call> add_watch(std::function<void(const TaskStatus*, std::exception_ptr)> on_change)
      KOLO_EXCLUDES(mutex_);
  void shut_down() KOLO_EXCLUDES(mutex_);

 private:
  class Watch;

  std::vector<std::string> workers() const;
  std::exception_ptr is_down() const;
  std::exception_ptr told(std::exception_ptr error, const std::exception_ptr& cancelled_with) const;

  const LocalWorkerOptions options_;
  const DeviceSet devices_;
  const int intra_op_threads_;
  const SessionPools pools_;
  std::vector<DeviceAttributes> attributes_;
  Peers* peers_ = nullptr;
  TaskVariables variables_;
  Containers containers_;
  RequestIds requests_;

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<WorkerSession>> sessions_ KOLO_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Watch>> watches_ KOLO_GUARDED_BY(mutex_);
  bool down_ KOLO_GUARDED_BY(mutex_) = false;
  KeptThreads threads_{"kolo-step"};  // last: its end waits for the steps, which use the rest
};

}  // namespace kolo::detail
