// A session on one server, as its client has it.
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>

#include <thread>

#include <kolo/core/base/error.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/cluster/server.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/input.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/session.h>

#include "servers_in_process.h"

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ClusterSessionTest : public ::testing::Test {
 protected:
  static SessionConfig through_socket() {
    SessionConfig config;
    config.rpc_options.use_rpc_for_inprocess_master = true;
    return config;
  }
  Graph graph_;
  const Scope s_ = Scope(graph_);
  const Output one_ = constant(s_.named("one"), Tensor::scalar(1.0f));
};

// Row 9 of CLUSTER.md.
TEST_F(ClusterSessionTest, TargetsOfAnotherKindAreNotFound) {
  EXPECT_THAT([&] { Session(graph_, "tcp://h:1"); },
              ThrowsMessage<NotFoundError>(HasSubstr(
                  "No session factory registered for the given session options: {target: \"tcp://h:1\"")));
}

TEST_F(ClusterSessionTest, TargetNeedsAPort) {
  for (const char* target : {"grpc://host", "grpc://", "grpc://host:0"})
    EXPECT_THAT([&] { Session(graph_, target); }, ThrowsMessage<InvalidArgumentError>(HasSubstr(target)));
}

TEST_F(ClusterSessionTest, NobodyThereIsUnavailableSoon) {
  const std::string address = "127.0.0.1:" + std::to_string(free_port());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT([&] { Session(graph_, "grpc://" + address); },
              ThrowsMessage<UnavailableError>(HasSubstr(address)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
}

// A task whose port takes connections and says nothing: the first one shows that the search is under way.
class SilentTask {
 public:
  SilentTask() : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~SilentTask() { ::close(listener_); }
  SilentTask(const SilentTask&) = delete;
  SilentTask& operator=(const SilentTask&) = delete;
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  bool wait_for_a_connection() const {
    pollfd waiting{.fd = listener_, .events = POLLIN, .revents = 0};
    return ::poll(&waiting, 1, 20'000) == 1;
  }

 private:
  const int listener_;
  int port_ = 0;
};

TEST_F(ClusterSessionTest, StopSignalEndsTheWaitForTasks) {
  install_stop_signals();
  for (SessionConfig config : {SessionConfig(), through_socket()}) {
    const SilentTask silent;
    const Server server(
        ClusterSpec({{"worker", {"127.0.0.1:" + std::to_string(free_port()), silent.address()}}}),
        {.job_name = "worker", .task_index = 0});
    config.operation_timeout_in_ms = 30'000;
    {
      const std::jthread user([&] {
        EXPECT_TRUE(silent.wait_for_a_connection());
        ::kill(::getpid(), SIGTERM);
      });
      EXPECT_THAT(
          [&] { Session(graph_, server.target(), config); },
          ThrowsMessage<CancelledError>(HasSubstr("a signal asked to stop while the session on grpc://")));
    }
    // One that is opened after the signal, as by a training that has just lost its session.
    EXPECT_THROW(Session(graph_, server.target(), config), CancelledError);
    clear_stop_signal();
  }
}

TEST_F(ClusterSessionTest, FedAndFetchedTensorGivesTheFedValue) {
  Server server = Server::create_local_server();
  for (const SessionConfig& config : {SessionConfig(), through_socket()}) {
    Session session(graph_, server.target(), config);
    EXPECT_EQ(session.run(one_, {{one_, Tensor::scalar(7.0f)}}).value<float>(), 7);
  }
}

TEST_F(ClusterSessionTest, ResultsAreTheCallersOwn) {
  Server server = Server::create_local_server();
  Session session(graph_, server.target());
  Tensor first = session.run(one_);
  first.span<float>()[0] = 5;
  EXPECT_EQ(session.run(one_).value<float>(), 1);
}

TEST_F(ClusterSessionTest, StoppedServerRefusesRuns) {
  Server server = Server::create_local_server();
  for (const SessionConfig& config : {SessionConfig(), through_socket()}) {
    Server own = Server::create_local_server();
    Session session(graph_, own.target(), config);
    session.run(one_);
    own.stop();
    EXPECT_THROW(session.run(one_), UnavailableError);
  }
}

class Numbers final : public ElementSource {
 public:
  std::vector<Component> components() const override { return {{DType::f32, {}}}; }
  bool next(std::vector<Tensor>& tensors) override {
    tensors = {Tensor::scalar(next_++)};
    return true;
  }

 private:
  float next_ = 1;
};

TEST_F(ClusterSessionTest, IteratorsRunInTheClientsProcessAlone) {
  Server server = Server::create_local_server();
  const Output element = make_iterator(s_.named("numbers"), std::make_shared<Numbers>())[0];
  Session session(graph_, server.target());
  EXPECT_EQ(session.run(element).value<float>(), 1);
  EXPECT_EQ(session.run(element).value<float>(), 2);
  const Output doubled = add(s_, element, element);
  Session far(graph_, server.target(), through_socket());
  EXPECT_THAT([&] { far.run(doubled); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("(IteratorNext) reads from the client's process; feed its values")));
  EXPECT_EQ(far.run(doubled, {{element, Tensor::scalar(4.0f)}}).value<float>(), 8);
  EXPECT_EQ(far.run(one_).value<float>(), 1);
  // So does one that comes later.
  const Output later = make_iterator(s_.named("later"), std::make_shared<Numbers>())[0];
  EXPECT_THROW(far.run(later), InvalidArgumentError);
  EXPECT_EQ(session.run(later).value<float>(), 1);
}

}  // namespace
}  // namespace kolo
