// Sessions on clusters some of whose tasks are not up. Rows are those of CLUSTER.md's worked examples.
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <thread>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/queues.h>

#include "servers_in_process.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

class SessionStart : public ServersTest {
 protected:
  SessionStart() : ServersTest(3) { set_log_level(LogLevel::info); }

  static Output sum_on(const Scope& s, const std::string& device) {
    const Scope there = s.device(device);
    const Output one = constant(there, Tensor::scalar(1.0f));
    return add(there, one, one);
  }
};

// Row 14.
TEST_F(SessionStart, IsAtOnceWhereFiltersLeaveOutWhoIsDown) {
  kill("worker0");
  Graph graph;
  const Scope s(graph);
  const Output far = sum_on(s, "/job:worker/task:0"), near = sum_on(s, "/job:worker/task:1");
  SessionConfig config{.operation_timeout_in_ms = 5000};
  config.device_filters = {"/job:ps", "/job:worker/task:1"};
  Session session(graph, target("worker1"), config);
  EXPECT_EQ(session.run(near).value<float>(), 2);
  EXPECT_THROW(session.run(far), InvalidArgumentError);
  config.device_filters = {"/job:a/b"};
  EXPECT_THAT([&] { Session(graph, target("worker1"), config); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Malformed device filter '/job:a/b'")));
}

// The one that answers is not to blame, whichever process asks.
TEST_F(SessionStart, NamesTheTaskThatIsMissingWhenItsTimeIsOver) {
  Graph graph;
  sum_on(Scope(graph), "/job:worker/task:2");
  for (SessionConfig config : {patient(), through_socket()}) {
    config.operation_timeout_in_ms = 1500;
    EXPECT_THAT([&] { Session(graph, target("worker0"), config); },
                ThrowsMessage<DeadlineExceededError>(
                    AllOf(HasSubstr("still waiting for response from worker: /job:worker/replica:0/task:2"),
                          HasSubstr(cluster_.task_address("worker", 2)), HasSubstr("Connection refused"),
                          Not(HasSubstr("task:0")))));
  }
}

// A server that gives runs little time leaves a session time to find its tasks.
TEST_F(SessionStart, IsBoundedByItsOwnTimeWhereItHasOne) {
  start("worker", 0, {.operation_timeout_in_ms = 200});
  Graph graph;
  sum_on(Scope(graph), "/job:worker/task:2");
  const auto fails_after = [&](const SessionConfig& config) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THROW(Session(graph, target("worker0"), config), DeadlineExceededError);
    return std::chrono::steady_clock::now() - begin;
  };
  for (SessionConfig config : {patient(), through_socket()}) {
    config.operation_timeout_in_ms = 1500;
    EXPECT_GE(fails_after(config), 1500ms);
    config.operation_timeout_in_ms = 0;
    EXPECT_LT(fails_after(config), 20s) << "the server's";
  }
}

// Of CLUSTER.md §3: what a server has configured wins.
TEST_F(SessionStart, TakesTheServersTimeoutWhereItHasOne) {
  start("worker", 2);
  start("worker", 0, {.operation_timeout_in_ms = 300});
  start("worker", 1, {.operation_timeout_in_ms = 20'000});
  Graph graph;
  const Scope s(graph);
  const FIFOQueue queue(s.named("empty"), {DType::f32});
  const Output never = dequeue(s, queue)[0];
  for (SessionConfig config : {patient(), through_socket()}) {
    Session shorter(graph, target("worker0"), config);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THROW(shorter.run(never), DeadlineExceededError);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
    config.operation_timeout_in_ms = 2000;
    Session longer(graph, target("worker1"), config);
    auto run = std::async(std::launch::async, [&] { longer.run(never); });
    EXPECT_EQ(run.wait_for(4s), std::future_status::timeout);
    longer.close();
    EXPECT_THROW(run.get(), CancelledError);
  }
}

// Row 15.
TEST_F(SessionStart, WaitsForATaskAndNamesItEveryTenSeconds) {
  Graph graph;
  const Output sum = sum_on(Scope(graph), "/job:worker/task:2");
  ::testing::internal::CaptureStderr();
  auto opened = std::async(std::launch::async, [&] {
    Session session(graph, target("worker0"), SessionConfig{.operation_timeout_in_ms = 60'000});
    return session.run(sum).value<float>();
  });
  EXPECT_EQ(opened.wait_for(12s), std::future_status::timeout);
  start("worker", 2);
  ASSERT_EQ(opened.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(opened.get(), 2);
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string line = "CreateSession still waiting for response from worker: ";
  EXPECT_THAT(log, AllOf(HasSubstr(line + "/job:worker/replica:0/task:2"),
                         HasSubstr(cluster_.task_address("worker", 2)),
                         Not(HasSubstr(line + "/job:worker/replica:0/task:1"))));
  EXPECT_EQ(log.find(line), log.rfind(line)) << log;
}

}  // namespace
}  // namespace kolo
