// Processes of a cluster on this machine, for as long as a measurement takes.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include <kolo/core/cluster/cluster_spec.h>

namespace kolo::bench {

/// On loopback ports that nobody had a moment ago.
ClusterSpec loopback_cluster(int servers, int workers);

/// A process that this one has started: ended with this object (SIGTERM, after 10 s SIGKILL), or when this
/// process dies.
class TaskProcess {
 public:
  /// program: beside this one. Its standard output is read here.
  TaskProcess(const std::string& program, std::vector<std::string> arguments);
  ~TaskProcess();
  TaskProcess(TaskProcess&& other) noexcept;
  TaskProcess& operator=(TaskProcess&&) = delete;

  /// The next line; false at its end. Blocks.
  bool next_line(std::string& line);
  /// Waits for its end; the exit code, 128 + the signal that ended it.
  int wait();
  std::int64_t resident_bytes() const;

 private:
  pid_t child_ = -1;
  int output_ = -1;
  std::string read_;
};

/// kolo-server for every task of job ps.
std::vector<TaskProcess> start_servers(const ClusterSpec& cluster);

}  // namespace kolo::bench
