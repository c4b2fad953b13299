// A parameter server in a process of its own, whose memory can be told from the test's.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/cluster_spec.h>

#include "tests/support/paths.h"

namespace kolo {

/// kolo-server as /job:ps/task:0 of a cluster of two parameter servers and two workers.
class ServerProcess {
 public:
  /// more: words of its command line.
  explicit ServerProcess(const ClusterSpec& cluster, const std::vector<std::string>& more = {}) {
    const std::string program = program_path("kolo-server");
    std::string text = "ps|" + cluster.task_address("ps", 0) + ";" + cluster.task_address("ps", 1) +
                       ",worker|" + cluster.task_address("worker", 0) + ";" +
                       cluster.task_address("worker", 1);
    std::vector<std::string> words{program, "--cluster", text, "--job", "ps", "--task", "0"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments.data(), environ), 0);
  }
  ~ServerProcess() {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool lives() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }
  /// MiB; which: "VmRSS" for now, "VmHWM" for the most that it ever was.
  double memory(const std::string& which) const {
    std::ifstream lines("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(which + ":")) return std::stod(line.substr(which.size() + 1)) / 1024;
    throw InternalError("no {} of process {}", which, pid_);
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace kolo
