// A server's port: where it listens, when it serves, how it stops, and what becomes of those who call nobody.
#include <gmock/gmock.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <random>
#include <thread>

#include <kolo/core/cluster/rpc/grpc_peers.h>
#include <kolo/core/cluster/task_address.h>

#include "tests/core/cluster/rpc_fakes.h"

namespace kolo::detail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

std::filesystem::path folder() {
  auto path = std::filesystem::temp_directory_path() / ("rpc_server_test." + std::to_string(getpid()));
  std::filesystem::create_directories(path);
  return path;
}

TEST(RpcServer, TellsItsPortAndGivesItBack) {
  std::string address;
  {
    FakeTask task;
    address = task.server.address();
    EXPECT_THAT(address, StartsWith("localhost:"));
    EXPECT_NE(task_address_of(address).port, 0);
    status_of(*task.remote_worker(), soon());
    EXPECT_THAT([&] { FakeTask second(FakeTask::at(address)); },
                ThrowsMessage<UnknownError>(
                    AllOf(HasSubstr("Could not start gRPC server"), HasSubstr("Address already in use"))));
  }
  FakeTask again(FakeTask::at(address));
  EXPECT_EQ(again.server.address(), address);
}

TEST(RpcServer, RefusesAHostThatIsNotThisMachine) {
  EXPECT_THAT([] { FakeTask task(FakeTask::at("192.0.2.1:0")); },
              ThrowsMessage<UnknownError>(
                  AllOf(HasSubstr("Could not start gRPC server"),
                        HasSubstr(" 192.0.2.1 is no address of this machine; give bind_address"))));
}

TEST(RpcServer, ListensEverywhereWhereItIsTold) {
  auto options = FakeTask::at("192.0.2.1:0");
  options.bind_address = "0.0.0.0";
  ::testing::internal::CaptureStderr();
  FakeTask task(std::move(options));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("without credentials: who reaches this port"));
  const int port = task_address_of(task.server.address()).port;
  RemoteWorker remote(make_channel("127.0.0.1:" + std::to_string(port), task.caller()),
                      "/job:ps/replica:0/task:0");
  EXPECT_NO_THROW(status_of(remote, soon()));
}

TEST(RpcServer, ServesASocketOfItsOwnersAlone) {
  const std::string path = folder() / "task";
  FakeTask task(FakeTask::at("unix:" + path));
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_NO_THROW(status_of(*task.remote_worker(), soon()));
}

TEST(RpcServer, LetsCallsWaitForItsStart) {
  FakeTask task(FakeTask::at("localhost:0"), false);
  auto status = std::async(std::launch::async, [&] { return status_of(*task.remote_worker(), soon()); });
  EXPECT_EQ(status.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  task.start();
  EXPECT_NO_THROW(status.get());
}

TEST(RpcServer, EndsWaitingCallsWhenItNeverStarts) {
  FakeTask task(FakeTask::at("localhost:0"), false);
  std::promise<void> ended;
  const auto watch = task.remote_worker()->watch(
      [&](const TaskStatus*, std::exception_ptr error) { ended.set_exception(error); });
  task.server.stop(std::chrono::milliseconds(0));
  EXPECT_THROW(ended.get_future().get(), UnavailableError);
}

TEST(RpcServer, LetsStepsEndWithinTheGrace) {
  FakeTask task;
  std::promise<void> runs, go_on;
  task.master.on_run = [&](const RunStepRequest&, const std::stop_token&) {
    runs.set_value();
    go_on.get_future().wait();
    return StepResult();
  };
  const auto remote = task.remote_master();
  RunStepRequest request;
  request.session = "ab";
  auto step = std::async(std::launch::async, [&] { return remote->run_step(request, soon()); });
  runs.get_future().wait();
  auto stop = std::async(std::launch::async, [&] { task.server.stop(std::chrono::seconds(20)); });
  // New calls are refused from some moment on; the one under way is not touched.
  const auto give_up = soon();
  std::string refusal;
  while (refusal.empty() && std::chrono::steady_clock::now() < *give_up) {
    try {
      list_devices(*remote, "ab", soon());
    } catch (const UnavailableError& error) {
      refusal = error.what();
    }
  }
  EXPECT_THAT(refusal, HasSubstr("/job:ps/replica:0/task:0 is shutting down"));
  go_on.set_value();
  EXPECT_NO_THROW(step.get());
  stop.get();
}

TEST(RpcServer, CancelsStepsBehindTheGrace) {
  FakeTask task;
  std::promise<void> runs;
  task.master.on_run = [&](const RunStepRequest&, const std::stop_token& stop) -> StepResult {
    std::promise<void> stopped;
    const std::stop_callback hook(stop, [&] { stopped.set_value(); });
    runs.set_value();
    stopped.get_future().wait();
    throw CancelledError("cancelled");
  };
  RunStepRequest request;
  request.session = "ab";
  auto step = std::async(std::launch::async,
                         [&, remote = task.remote_master()] { return remote->run_step(request, soon()); });
  runs.get_future().wait();
  task.server.stop(std::chrono::milliseconds(10));
  EXPECT_THROW(step.get(), Error);
}

// It cannot be stopped without the handler's thread; who waits is told for what.
TEST(RpcServer, SaysForWhichCallsItWaits) {
  FakeTask task;
  std::promise<void> runs, may_end;
  task.master.on_run = [&](const RunStepRequest&, const std::stop_token&) -> StepResult {
    runs.set_value();
    may_end.get_future().wait();
    throw CancelledError("at last");
  };
  RunStepRequest request;
  request.session = "ab";
  auto step = std::async(std::launch::async,
                         [&, remote = task.remote_master()] { return remote->run_step(request, soon()); });
  runs.get_future().wait();
  ::testing::internal::CaptureStderr();
  auto stop = std::async(std::launch::async, [&] { task.server.stop(std::chrono::milliseconds(0)); });
  EXPECT_EQ(stop.wait_for(std::chrono::seconds(16)),
            std::future_status::timeout);  // last calls 5 s, then 10 s
  may_end.set_value();
  stop.get();
  EXPECT_THROW(step.get(), Error);
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      ::testing::HasSubstr("/job:ps/replica:0/task:0 cannot stop for 10 s: 1 calls heed no cancelling"));
}

TEST(RpcChannel, NamesAddressAndReasonWhereNobodyIs) {
  std::string address;
  {
    FakeTask task;
    address = task.server.address();
  }
  RemoteWorker remote(make_channel(address, {}), "/job:ps/replica:0/task:0");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT([&] { status_of(remote, {}); },
              ThrowsMessage<UnavailableError>(AllOf(HasSubstr(address), HasSubstr("Connection refused"))));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

// Not when gRPC's back-off from an attempt that failed is over.
TEST(RpcChannel, ReachesAServerThatCameBackWithTheNextCall) {
  auto task = std::make_unique<FakeTask>();
  const std::string address = task->server.address();
  const auto remote = task->remote_worker();
  for (int i = 0; i < 3; ++i) {
    EXPECT_NO_THROW(status_of(*remote, soon()));
    task.reset();
    for (int again = 0; again < 3; ++again) EXPECT_THROW(status_of(*remote, soon()), UnavailableError);
    task = std::make_unique<FakeTask>(FakeTask::at(address));
  }
  EXPECT_NO_THROW(status_of(*remote, soon()));
}

TEST(RpcChannel, FindsAServerThatCameBack) {
  auto task = std::make_unique<FakeTask>();
  const std::string address = task->server.address();
  const auto remote = task->remote_worker();
  status_of(*remote, soon());
  task.reset();
  EXPECT_THROW(status_of(*remote, soon()), UnavailableError);
  task = std::make_unique<FakeTask>(FakeTask::at(address));
  const auto give_up = soon();
  bool back = false;
  while (!back && std::chrono::steady_clock::now() < *give_up) {
    try {
      status_of(*remote, soon());
      back = true;
    } catch (const UnavailableError&) {
    }
  }
  EXPECT_TRUE(back);
}

// Another process that serves a worker whose parts never end, and tells its address through a pipe.
class OtherProcess {
 public:
  OtherProcess() {
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) throw InternalError("no pipe");
    child_ = fork();
    if (child_ == 0) {
      const std::string file = "/proc/self/exe", written = std::to_string(pipe_ends[1]);
      setenv("RPC_TEST_SERVE_TO", written.c_str(), 1);
      execl(file.c_str(), file.c_str(), nullptr);
      _exit(1);
    }
    close(pipe_ends[1]);
    char text[256];
    const auto length = read(pipe_ends[0], text, sizeof(text));
    close(pipe_ends[0]);
    if (length > 0) address_.assign(text, static_cast<std::size_t>(length));
  }
  ~OtherProcess() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  void signal(int number) const { kill(child_, number); }
  /// What its end does to a part that runs there.
  void expect_part_ends(int number, const std::string& reason) {
    RemoteWorker remote(make_channel(address_, {}), "/job:ps/replica:0/task:0");
    status_of(remote, soon());
    std::promise<void> ended;
    const auto call = remote.run_part(
        part_request(), {}, [&](std::exception_ptr error, PartResult) { ended.set_exception(error); });
    signal(number);
    auto future = ended.get_future();
    ASSERT_EQ(future.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    EXPECT_THAT([&] { future.get(); },
                ThrowsMessage<UnavailableError>(AllOf(HasSubstr(address_), HasSubstr(reason))));
  }

 private:
  pid_t child_ = -1;
  std::string address_;
};

TEST(RpcChannel, TellsThatTheConnectionWasClosed) {
  OtherProcess().expect_part_ends(SIGKILL, "connection closed");
}

TEST(RpcChannel, TellsThatThereIsNoAnswer) { OtherProcess().expect_part_ends(SIGSTOP, "no answer for 4 s"); }

TEST(GrpcPeers, ReachTheTasksOfTheirCluster) {
  FakeTask task;
  task.worker.answer_status.variable_bytes = 3;
  GrpcPeers peers(ClusterSpec({{"ps", {task.server.address()}}, {"worker", {"localhost:1"}}}), task.caller());
  EXPECT_THAT(peers.tasks(),
              ::testing::ElementsAre("/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"));
  EXPECT_EQ(status_of(*peers.worker("/job:ps/replica:0/task:0"), soon()).variable_bytes, 3);
  EXPECT_EQ(peers.worker("/job:ps/replica:0/task:0"), peers.worker("/job:ps/replica:0/task:0"));
  const auto own = std::make_shared<FakeWorker>();
  peers.set_own(own, own);
  EXPECT_EQ(peers.worker("/job:worker/replica:0/task:0"), own);
  EXPECT_THROW(peers.worker("/job:ps/replica:0/task:1"), InvalidArgumentError);
}

}  // namespace

void serve_for_a_test(int pipe_end) {
  FakeTask task;
  task.worker.on_run = [](const RunPartRequest&, const FakeWorker::Done&) { return std::shared_ptr<Call>(); };
  const std::string& address = task.server.address();
  if (write(pipe_end, address.data(), address.size()) > 0) close(pipe_end);
  while (true) pause();
}

}  // namespace kolo::detail

int main(int argc, char** argv) {
  if (const char* const pipe_end = std::getenv("RPC_TEST_SERVE_TO"))
    kolo::detail::serve_for_a_test(std::atoi(pipe_end));
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
