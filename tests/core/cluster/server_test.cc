// Rows are those of CLUSTER.md's worked examples.
#include <kolo/core/cluster/server.h>

#include <gmock/gmock.h>

#include <future>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>

#include "servers_in_process.h"

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

const ClusterSpec kTwoWorkers({{"worker", {"localhost:0", "localhost:0"}}});

int port_of(const Server& server) {
  return std::stoi(server.target().substr(server.target().rfind(':') + 1));
}

// Row 6.
TEST(Server, RefusesATaskThatTheClusterLacks) {
  EXPECT_THAT([] { Server(kTwoWorkers, {.job_name = "worker", .task_index = 4}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Task 4 was not defined in job \"worker\"")));
  EXPECT_THAT([] { Server(kTwoWorkers, {.job_name = "master", .task_index = 0}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Job \"master\" was not defined in cluster")));
  EXPECT_THAT(
      [] {
        Server(ClusterSpec({{"a", {"h:x"}}}), {.job_name = "a", .task_index = 0});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Could not parse port for local server from \"h:x\".")));
  EXPECT_THAT(
      [] {
        Server(ClusterSpec({{"a", {"localhost:0"}}, {"b", {"h:x"}}}), {.job_name = "a"});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Could not interpret \"h:x\" as a host-port pair.")));
}

TEST(Server, NeedsItsTaskWhereThereAreSeveral) {
  EXPECT_THAT([] { Server(kTwoWorkers, {.job_name = "worker"}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Must specify an explicit `task_index`.")));
  EXPECT_THAT(
      [] {
        Server(ClusterSpec({{"a", {"h:1"}}, {"b", {"h:2"}}}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Must specify an explicit `job_name`.")));
}

TEST(Server, SpeaksGrpcAlone) {
  EXPECT_THAT([] { Server(kTwoWorkers, {.job_name = "worker", .task_index = 0, .protocol = "verbs"}); },
              ThrowsMessage<NotFoundError>(HasSubstr("No server factory registered")));
}

// Row 7.
TEST(Server, ServesFromStartToStop) {
  Server server = Server::create_local_server({}, /*start=*/false);
  EXPECT_GT(port_of(server), 0);
  server.join();  // returns at once
  ::testing::internal::CaptureStderr();
  server.start();
  server.start();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("Started server with target: " + server.target()));
  EXPECT_THAT(log, HasSubstr("Server already started (target: " + server.target() + ")"));
  EXPECT_TRUE(can_connect(port_of(server)));
  server.stop();
  server.join();
  EXPECT_FALSE(can_connect(port_of(server)));
  EXPECT_THAT([&] { server.start(); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("Server has stopped.")));
}

TEST(Server, MayStopBeforeItStarts) {
  Server server = Server::create_local_server({}, false);
  server.stop();
  EXPECT_FALSE(can_connect(port_of(server)));
}

TEST(Server, JoinReturnsWhenAnotherThreadStopsIt) {
  Server server = Server::create_local_server();
  auto joined = std::async(std::launch::async, [&] { server.join(); });
  server.stop();
  EXPECT_EQ(joined.wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST(Server, TakesNoPortThatIsTaken) {
  const Server first = Server::create_local_server();
  const std::string address = first.target().substr(std::string("grpc://").size());
  EXPECT_THAT(
      [&] {
        Server(ClusterSpec({{"local", {address}}}));
      },
      ThrowsMessage<UnknownError>(HasSubstr("Could not start gRPC server")));
}

// Row 8.
TEST(Server, LocalServersShareAProcess) {
  Server first = Server::create_local_server(), second = Server::create_local_server();
  EXPECT_NE(first.target(), second.target());
  Graph graph;
  constant(Scope(graph), Tensor::scalar(1.0f));
  std::vector<DeviceAttributes> devices;
  for (Server* server : {&first, &second}) {
    const auto of_session = Session(graph, server->target()).list_devices();
    ASSERT_THAT(of_session, SizeIs(1));
    devices.push_back(of_session[0]);
    EXPECT_EQ(devices.back().name, "/job:local/replica:0/task:0/device:CPU:0");
  }
  EXPECT_NE(devices[0].incarnation, devices[1].incarnation);
}

// Row 10.
class ConfiguredServers : public ServersTest {};

TEST_F(ConfiguredServers, ConfigGoesOverThatOfSessions) {
  start("worker", 0, {.device_count = {{"CPU", 3}}, .device_filters = {"/job:worker"}});
  Graph graph;
  constant(Scope(graph), Tensor::scalar(1.0f));
  SessionConfig config = patient();
  config.device_filters = {"/job:ps"};
  config.device_count = {{"CPU", 7}};
  const Session session(graph, target("worker0"), config);
  std::map<std::string, int> cpus;
  for (const DeviceAttributes& device : session.list_devices())
    ++cpus[device.name.substr(0, device.name.find("/device"))];
  EXPECT_EQ(cpus["/job:worker/replica:0/task:0"], 3);
  EXPECT_EQ(cpus["/job:worker/replica:0/task:1"], 1);
  EXPECT_EQ(cpus["/job:ps/replica:0/task:0"], 1);
  EXPECT_EQ(cpus["/job:ps/replica:0/task:1"], 1);
}

TEST_F(ConfiguredServers, EndWithTheirWorkers) {
  kill("ps0");
  Server ps(cluster_, {.job_name = "ps", .task_index = 0, .end_with_workers = true});
  Graph graph;
  constant(Scope(graph), Tensor::scalar(1.0f));
  for (const char* worker : {"worker0", "worker1"}) Session(graph, target(worker), patient()).close();
  at("worker0").stop();
  auto joined = std::async(std::launch::async, [&] { ps.join(); });
  EXPECT_EQ(joined.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  at("worker1").stop();
  EXPECT_EQ(joined.wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

}  // namespace
}  // namespace kolo
