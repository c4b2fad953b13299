// Included before a test of local sessions and behind all that it includes itself (kolo_test's ON_SERVERS
// sees to that), it has the same source test sessions on servers: what they call Session and Scope runs where
// TEST_SESSION_TARGET says, which is "server" (all on one, created by create_local_server) or "cluster"
// (variables on a parameter server, all else on the one worker).
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include <kolo/core/cluster/device_setter.h>
#include <kolo/core/cluster/server.h>
#include <kolo/core/graph/scope.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/cluster/servers_in_process.h"

namespace kolo::testing_support {

inline bool is_on_cluster() {
  const char* const wanted = std::getenv("TEST_SESSION_TARGET");
  return wanted != nullptr && std::string(wanted) == "cluster";
}

/// Made with the first session, and there until the process ends.
class TestServers {
 public:
  static TestServers& instance() {
    static TestServers servers;
    return servers;
  }
  const std::string& target() const { return last_->target(); }
  static DeviceFunction setter() {
    if (!is_on_cluster()) return {};
    return replica_device_setter({.ps_tasks = 1, .worker_device = "/job:worker/task:0"});
  }

 private:
  TestServers() {
    if (!is_on_cluster()) {
      last_.reset(new Server(Server::create_local_server()));
      return;
    }
    const auto address = [] { return "127.0.0.1:" + std::to_string(free_port()); };
    const ClusterSpec cluster({{"ps", {address()}}, {"worker", {address()}}});
    ps_ = std::make_unique<Server>(cluster, ServerOptions{.job_name = "ps", .task_index = 0});
    last_ = std::make_unique<Server>(cluster, ServerOptions{.job_name = "worker", .task_index = 0});
  }
  std::unique_ptr<Server> ps_, last_;
};

class SessionOnServer : public Session {
 public:
  explicit SessionOnServer(Graph& graph, SessionConfig config = {})
      : Session(graph, TestServers::instance().target(), with_own_state(std::move(config))) {}

 private:
  /// As in one process, variables end with their session.
  static SessionConfig with_own_state(SessionConfig config) {
    config.isolate_session_state = true;
    return config;
  }
};

class ScopeOnServer : public Scope {
 public:
  explicit ScopeOnServer(Graph& graph)
      : Scope(is_on_cluster() ? Scope(graph).device(TestServers::setter()) : Scope(graph)) {}
  ScopeOnServer(const Scope& other)
      : Scope(other) {}  // NOLINT(google-explicit-constructor): of its functions
};

}  // namespace kolo::testing_support

namespace kolo {
using testing_support::ScopeOnServer;
using testing_support::SessionOnServer;
}  // namespace kolo

#define Session SessionOnServer
#define Scope ScopeOnServer
