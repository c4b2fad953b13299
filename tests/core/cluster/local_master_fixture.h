// A master whose tasks are scripted.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <kolo/core/cluster/master/local_master.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>

#include "scripted_workers.h"

namespace kolo::detail {

using Clock = std::chrono::steady_clock;

inline constexpr char kPs[] = "/job:ps/replica:0/task:0";
inline constexpr char kWorker0[] = "/job:worker/replica:0/task:0";
inline constexpr char kWorker1[] = "/job:worker/replica:0/task:1";

/// A master on worker 0 of a cluster of one ps and two workers. Its graph: b = a + 1 on the ps, where a is
/// fed, c = b + 1 without device; a variable v on the ps.
class LocalMasterTest : public ::testing::Test {
 protected:
  LocalMasterTest() {
    const Scope s(graph_);
    a_ = placeholder(s.named("a"), DType::f32, {});
    b_ = add(s.named("b").device("/job:ps/task:0"), a_, one(s.device("/job:ps/task:0")));
    c_ = add(s.named("c"), b_, one(s));
    Variable(s.named("v").device("/job:ps/task:0"), one(s));
  }

  static Output one(const Scope& s) { return constant(s, Tensor::scalar(1.0f)); }

  LocalMaster& master() {
    if (!master_) {
      options_.task = kWorker0;
      options_.target = "grpc://host:0";
      options_.find.version = "1";
      options_.find.cluster_fingerprint = 7;
      options_.find.retry = std::chrono::milliseconds(10);
      master_ = std::make_unique<LocalMaster>(options_, peers_);
    }
    return *master_;
  }
  std::string open(const SessionConfig& config = {}) {
    return create_session(master(), to_graph_def(graph_), config, Clock::now() + kTestPatience).handle();
  }
  StepResult run(const std::string& session, const Deadline& deadline = {}, std::stop_token stop = {}) {
    RunStepRequest request;
    request.session = session;
    request.names = {.feeds = {"a:0"}, .fetches = {"c:0"}, .targets = {}};
    request.feeds = {Tensor::scalar(3.0f)};
    return master().run_step(request, deadline.with(std::move(stop)));
  }
  ScriptedWorker& ps() { return peers_->at(kPs); }
  ScriptedWorker& own() { return peers_->at(kWorker0); }

  /// Waits until the condition holds.
  template <typename Condition>
  static bool soon(const Condition& condition) {
    const auto until = Clock::now() + kTestPatience;
    while (!condition()) {
      if (Clock::now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  }

  Graph graph_;
  Output a_, b_, c_;
  std::shared_ptr<ScriptedPeers> peers_ =
      std::make_shared<ScriptedPeers>(std::vector<std::string>{kPs, kWorker0, kWorker1});
  LocalMasterOptions options_;
  std::unique_ptr<LocalMaster> master_;
};

}  // namespace kolo::detail
