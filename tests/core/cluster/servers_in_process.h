// Servers of one cluster in the process of a test.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/free_ports.h>
#include <kolo/core/cluster/server.h>
#include <kolo/core/runtime/session.h>

namespace kolo {

/// A port of the loopback interface that nobody had a moment ago.
inline int free_port() { return FreePorts(1)[0]; }

/// Whether somebody listens there.
inline bool can_connect(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  ::close(fd);
  return connected;
}

/// Two parameter servers and two workers; workers beyond these are the test's to start.
class ServersTest : public ::testing::Test {
 protected:
  explicit ServersTest(int workers = 2) : cluster_(make_cluster(workers)) {
    for (const char* job : {"ps", "worker"})
      for (int i = 0; i < 2; ++i) start(job, i);
  }

  static ClusterSpec make_cluster(int workers) {
    const auto addresses = [](int tasks) {
      std::vector<std::string> made;
      for (int i = 0; i < tasks; ++i) made.push_back("127.0.0.1:" + std::to_string(free_port()));
      return made;
    };
    return ClusterSpec({{"ps", addresses(2)}, {"worker", addresses(workers)}});
  }
  Server& start(const std::string& job, int index, SessionConfig config = {}) {
    auto& server = servers_[job + std::to_string(index)];
    server.reset();
    server = std::make_unique<Server>(
        cluster_, ServerOptions{.job_name = job, .task_index = index, .config = std::move(config)});
    return *server;
  }
  Server& at(const std::string& task) { return *servers_.at(task); }
  std::string target(const std::string& task) { return at(task).target(); }
  void kill(const std::string& task) { servers_.at(task).reset(); }

  /// A session that waits no longer than a test has patience.
  static SessionConfig patient() { return {.operation_timeout_in_ms = 30'000}; }
  /// The same, through a socket though the server is in this process.
  static SessionConfig through_socket() {
    SessionConfig config = patient();
    config.rpc_options.use_rpc_for_inprocess_master = true;
    return config;
  }

  ClusterSpec cluster_;
  std::map<std::string, std::unique_ptr<Server>> servers_;
};

}  // namespace kolo
