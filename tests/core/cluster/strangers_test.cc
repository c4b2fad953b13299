// Connections that nobody has asked for keep no one out, and cost a server a bounded amount.
#include <gmock/gmock.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <kolo/core/cluster/client/check_server.h>
#include <kolo/core/cluster/task_address.h>

#include "tests/core/cluster/rpc_fakes.h"
#include "tests/core/cluster/server_process.h"
#include "tests/core/cluster/servers_in_process.h"
#include "tests/core/cluster/strangers.h"

namespace kolo {
namespace {

using detail::FakeTask;
using detail::soon;
using ::testing::HasSubstr;

const std::string kSecret = "correct horse battery";

detail::RpcServerOptions with_token() {
  auto options = FakeTask::at("127.0.0.1:0");
  options.credentials.token = kSecret;
  return options;
}
detail::Caller known_caller(const FakeTask& task) {
  auto caller = task.caller();
  caller.credentials.token = kSecret;
  return caller;
}
int port_of(const FakeTask& task) { return detail::task_address_of(task.server.address()).port; }

template <typename Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(Strangers, MakeWayForThoseWhoComeLater) {
  auto options = with_token();
  options.limits.connections = 40, options.limits.strangers = 16;
  FakeTask task(std::move(options));
  RawConnections idle, of_another;
  for (int i = 0; i < 100; ++i) EXPECT_GE(idle.add(port_of(task)), 0);
  // Half of the strangers' places, for those of one address.
  EXPECT_TRUE(comes_true([&] { return idle.open() <= 8; }));
  EXPECT_GE(of_another.add(port_of(task), "127.0.0.2"), 0);
  for (int i = 0; i < 5; ++i) EXPECT_NO_THROW(status_of(*task.remote_worker(known_caller(task)), soon()));
  EXPECT_EQ(of_another.open(), 1u);
}

TEST(Strangers, LeaveThoseAloneWhoAreKnown) {
  auto options = with_token();
  options.limits.connections = 8, options.limits.strangers = 4;
  FakeTask task(std::move(options));
  const auto known = task.remote_worker(known_caller(task));
  std::atomic<bool> over = false;
  status_of(*known, soon());
  const auto watch = known->watch([&](const detail::TaskStatus* status, const std::exception_ptr&) {
    if (status == nullptr) over = true;
  });
  RawConnections idle;
  for (int i = 0; i < 50; ++i) idle.add(port_of(task));
  EXPECT_TRUE(comes_true([&] { return idle.open() <= 2; }));
  EXPECT_NO_THROW(status_of(*known, soon()));
  EXPECT_FALSE(over);
  watch->cancel();
}

TEST(Connections, AreLimitedForOneAddressAndForAll) {
  auto options = FakeTask::at("127.0.0.1:0");
  options.limits.connections = 8, options.limits.connections_of_peer = 3;
  FakeTask task(std::move(options));
  std::vector<std::shared_ptr<detail::RemoteWorker>> known;
  for (int i = 0; i < 3; ++i) {
    known.push_back(task.remote_worker());
    status_of(*known.back(), soon());
  }
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) EXPECT_THROW(status_of(*task.remote_worker(), soon()), UnavailableError);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("takes no more than 8, 3 from one address"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1);
  known.pop_back();
  EXPECT_TRUE(comes_true([&] {
    try {
      status_of(*task.remote_worker(), soon());
      return true;
    } catch (const UnavailableError&) {
      return false;
    }
  }));
}

TEST(Connections, OfThoseWhoAreRefusedAgainAndAgainAreCut) {
  FakeTask task(with_token());
  RawConnections connections;
  const int descriptor = connections.add(port_of(task));
  const std::string few = http2_preface() + reset_calls(1, 4), more = reset_calls(9, 100);
  ASSERT_GT(::send(descriptor, few.data(), few.size(), MSG_NOSIGNAL), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(connections.open(), 1u);
  ASSERT_GT(::send(descriptor, more.data(), more.size(), MSG_NOSIGNAL), 0);
  EXPECT_TRUE(comes_true([&] { return connections.open() == 0; }));
}

// The first call of a connection may be a large one: its bytes wait until the server knows its caller.
TEST(Connections, CarryMuchAsSoonAsTheirCallerIsKnown) {
  FakeTask task(with_token());
  for (int i = 0; i < 20; ++i) {
    const auto remote = task.remote_worker(known_caller(task));
    remote->set_variables(
        "ab", {{"", "v"}}, [](std::size_t) { return Tensor::zeros(DType::u8, {4 << 20}); }, soon());
    EXPECT_EQ(task.worker.set.at(0).bytes(), 4u << 20);
  }
}

class ServerBesideStrangers : public ServersTest {
 protected:
  ServerBesideStrangers() {
    kill("ps0");
    folder_ = std::filesystem::temp_directory_path() / ("strangers_test." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream(token_file()) << kSecret;
    chmod(token_file().c_str(), 0600);
  }
  ~ServerBesideStrangers() override { std::filesystem::remove_all(folder_); }
  std::string token_file() const { return folder_ / "token"; }
  std::string address() const { return cluster_.task_address("ps", 0); }
  int port() const { return detail::task_address_of(address()).port; }
  bool answers() const {
    try {
      check_server(address(), {.token_file = token_file()});
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  std::filesystem::path folder_;
};

TEST_F(ServerBesideStrangers, ListensOnWhenItHasHadNoDescriptorLeft) {
  const ServerProcess ps(cluster_, {"--token-file", token_file()});
  ASSERT_TRUE(comes_true([&] { return answers(); }));
  const auto used = static_cast<rlim_t>(
      std::distance(std::filesystem::directory_iterator("/proc/" + std::to_string(ps.pid()) + "/fd"), {}));
  const rlimit few{used + 20, used + 20};
  ASSERT_EQ(prlimit(ps.pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  {
    RawConnections idle;
    for (int i = 0; i < 100; ++i) idle.add(port());
    EXPECT_TRUE(comes_true([&] { return idle.open() <= 20; }));
  }
  EXPECT_TRUE(comes_true([&] { return answers(); }));
  EXPECT_TRUE(ps.lives());
}

// 200,000 of them were 2 GiB, and more than a minute in which nobody was served.
TEST_F(ServerBesideStrangers, KeepsNothingOfCallsThatItRefuses) {
  const ServerProcess ps(cluster_, {"--token-file", token_file()});
  ASSERT_TRUE(comes_true([&] { return answers(); }));
  [[maybe_unused]] const double before = ps.memory("VmRSS");
  int sent = 0;
  for (int i = 0; i < 400 && sent < 200'000; ++i) {
    sent += flood_with_resets(port(), 200'000 - sent);
    if (i % 20 == 0) {
      EXPECT_TRUE(answers());
    }
  }
  EXPECT_TRUE(answers());
  RecordProperty("calls", std::to_string(sent));
  RecordProperty("MiB_at_most", std::to_string(ps.memory("VmHWM")));
  EXPECT_GT(sent, 10'000);
#if !defined(__SANITIZE_ADDRESS__) && !defined(KOLO_THREAD_SANITIZER)
  EXPECT_LT(ps.memory("VmHWM"), 400);
  EXPECT_TRUE(comes_true([&] { return ps.memory("VmRSS") < before + 30; }))
      << before << " MiB before, " << ps.memory("VmRSS")
      << " after: the pages of refused calls are free, and kept";
#endif
  ::kill(ps.pid(), SIGTERM);
  EXPECT_TRUE(comes_true([&] { return !ps.lives(); }));
}

}  // namespace
}  // namespace kolo
