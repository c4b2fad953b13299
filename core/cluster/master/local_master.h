// The master of a server: keeps its clients' sessions.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/master/find_tasks.h>
#include <kolo/core/cluster/master/master.h>
#include <kolo/core/cluster/master/master_session.h>

namespace kolo::detail {

struct LocalMasterOptions {
  std::string task;               // the own one: /job:worker/replica:0/task:0
  std::string target;             // grpc://host:port
  std::uint64_t incarnation = 0;  // of this process, see TaskProcess
  SessionConfig config = {};      // the server's
  FindTasksOptions find = {};     // with the own version and fingerprint
  std::chrono::milliseconds session_gc{
      60'000};                  // a session without watch and call for so long is closed; 0: never
  std::size_t sessions = 1000;  // at most
  /// Runs the own task's parts on the threads of the calls; not given: as any other task's.
  RunPartHere run_here = {};
  /// Who has sent the call that this thread serves; "": this process.
  std::function<std::string()> caller = {};
};

class LocalMaster final : public Master {
 public:
  /// Reads KOLO_STALL_WARNING_S.
  LocalMaster(LocalMasterOptions options, std::shared_ptr<Peers> peers);
  /// Closes all sessions.
  ~LocalMaster() override;
  LocalMaster(const LocalMaster&) = delete;
  LocalMaster& operator=(const LocalMaster&) = delete;

  StepResult run_step(const RunStepRequest& request, const Deadline& deadline) override;
  void get_variables(const std::string& session, const std::vector<std::string>& names,
                     const std::function<void(std::size_t, Tensor)>& on_value,
                     const Deadline& deadline) override;
  void set_variables(const std::string& session, const std::vector<std::string>& names,
                     const std::function<Tensor(std::size_t)>& value, const Deadline& deadline) override;
  std::shared_ptr<Call> watch(const std::string& session,
                              std::function<void(std::exception_ptr)> ended) override;

  /// Throws what calls for a session that is not there do.
  void check_session(const std::string& session) { find(session); }
  /// Later calls get UnavailableError `<task> is shutting down`. Steps under way may end within `grace`; then
  /// all sessions are closed. Idempotent.
  void shutdown(std::chrono::milliseconds grace = {}) KOLO_EXCLUDES(mutex_);

 private:
  struct Answers;
  void on_call(std::string_view method, const Message& request, GraphDef* graph, Message& answer,
               const Deadline& deadline) override;
  def::CreateSessionResponseDef create_session(const GraphDef& graph, const SessionConfig& config,
                                               const Deadline& deadline) KOLO_EXCLUDES(mutex_);
  void close_session(const std::string& session, const Deadline& deadline) KOLO_EXCLUDES(mutex_);
  void reset(const std::vector<std::string>& containers, const SessionConfig& config,
             const Deadline& deadline) KOLO_EXCLUDES(mutex_);

  using Sessions = std::map<std::string, std::shared_ptr<MasterSession>>;
  std::shared_ptr<MasterSession> find(const std::string& session) KOLO_EXCLUDES(mutex_);
  std::vector<std::string> tasks_for(const SessionConfig& config) const;
  void close_all(const Deadline& deadline) KOLO_EXCLUDES(mutex_);
  void lose(const std::string& task, const std::exception_ptr& why) KOLO_EXCLUDES(mutex_);
  void collect(const std::stop_token& stop) KOLO_EXCLUDES(mutex_);

  const LocalMasterOptions options_;
  const std::shared_ptr<Peers> peers_;
  Mutex mutex_;
  CondVar changed_;
  Sessions sessions_ KOLO_GUARDED_BY(mutex_);
  std::size_t opening_ KOLO_GUARDED_BY(mutex_) = 0;
  bool over_ KOLO_GUARDED_BY(mutex_) = false;
  std::stop_source stop_;  // of sessions that are being created
  StepKeeper keeper_;
  TaskWatches watches_;
  MasterEnvironment environment_;
  std::jthread collector_;
};

}  // namespace kolo::detail
