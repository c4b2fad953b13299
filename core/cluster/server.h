// A task of a cluster: runs its parts of graphs for the sessions of any client, and keeps the sessions of
// clients that name it as their target.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <kolo/core/cluster/cluster_spec.h>
#include <kolo/core/cluster/credentials.h>
#include <kolo/core/runtime/config.h>

namespace kolo {

struct ServerOptions {
  std::string job_name = {};           // may be left out in a cluster of one job
  std::optional<int> task_index = {};  // may be left out in a job of one task
  std::string protocol = "grpc";
  /// Devices and threads of the task. What else differs from its default goes over what sessions ask for;
  /// lists are appended to theirs.
  SessionConfig config = {};
  bool start = true;  // in the constructor
  /// Where to listen instead of at the task's own address; `0.0.0.0` and `::`: on every interface.
  std::string bind_address = {};
  ClusterCredentials credentials = {};  // what is left out: of the environment
  int session_gc_seconds = 60;          // sessions whose client is gone for so long are closed; 0: never
  /// Stops when each task of the jobs chief, master and worker has been connected and has stopped on purpose.
  /// Not given: KOLO_END_WITH_WORKERS is 1.
  std::optional<bool> end_with_workers = {};
};

/// Any thread. Variables, queues and accumulators of its task live as long as it.
class Server {
 public:
  /// Binds the port and makes the devices; calls that come before start() wait. Throws NotFoundError `No
  /// server factory registered` for another protocol, InvalidArgumentError `Task <i> was not defined in job
  /// "<j>"`, `Job "<j>" was not defined in cluster`, `Could not parse port for local server from "<addr>".`,
  /// `Could not interpret "<addr>" as a host-port pair.`, UnknownError `Could not start gRPC server`.
  explicit Server(const ClusterSpec& cluster, ServerOptions options = {});
  /// stop() without grace.
  ~Server();
  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;

  /// Task 0 of a cluster of its own, with the one job `local`, on a free port of this machine; any number in
  /// a process.
  static Server create_local_server(SessionConfig config = {}, bool start = true);

  /// Serves. Again: only says so in the log. Throws FailedPreconditionError `Server has stopped.`
  void start();
  /// New calls get UnavailableError `<task> is shutting down`; steps may end within `grace`, then they are
  /// cancelled. The port is free then, and variables are gone. Idempotent.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(10));
  /// Returns when the server has stopped; at once where it was not started. SIGTERM and SIGUSR1 stop it: with
  /// end_with_workers when its workers, which save with its help, have stopped, but at most 5 minutes later.
  /// A second SIGTERM ends the process at once. To be called on the main thread where signals shall be
  /// heeded.
  void join();

  /// `grpc://host:port`, from the constructor on: what sessions take as their target.
  const std::string& target() const;
  /// With the bound port in it.
  const ClusterSpec& cluster() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kolo
