#include <kolo/core/cluster/lost_masters.h>

#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include <kolo/core/cluster/rpc/channel.h>

#include "tests/core/cluster/servers_in_process.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;
using detail::LostMasters;
using detail::WatcherEvent;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kMaster = "/job:worker/replica:0/task:0";

class LostMastersTest : public ::testing::Test {
 protected:
  std::atomic<int> closed_ = 0;
  std::promise<std::string> first_;
  LostMasters masters_{50ms, [this](const std::string& master, std::chrono::seconds) {
                         if (++closed_ == 1) first_.set_value(master);
                       }};
};

TEST_F(LostMastersTest, AreClosedOnceWhenTheyStayAway) {
  masters_.hear(kMaster, WatcherEvent::connected);
  masters_.hear(kMaster, WatcherEvent::lost);
  auto first = first_.get_future();
  ASSERT_EQ(first.wait_for(30s), std::future_status::ready);
  EXPECT_EQ(first.get(), kMaster);
  EXPECT_EQ(closed_, 1);
}

TEST_F(LostMastersTest, AreLeftAloneWhenTheyHaveComeBack) {
  masters_.hear(kMaster, WatcherEvent::connected);
  masters_.hear(kMaster, WatcherEvent::lost);
  masters_.hear(kMaster, WatcherEvent::connected);
  // The new watch before the end of the old one.
  masters_.hear("/job:worker/replica:0/task:1", WatcherEvent::connected);
  masters_.hear("/job:worker/replica:0/task:1", WatcherEvent::connected);
  masters_.hear("/job:worker/replica:0/task:1", WatcherEvent::lost);
  auto first = first_.get_future();
  EXPECT_EQ(first.wait_for(300ms), std::future_status::timeout);
}

class SessionsOfLostMasters : public ServersTest {};

TEST_F(SessionsOfLostMasters, EndOnTheOtherTasks) {
  servers_.erase("ps0");
  servers_["ps0"] = std::make_unique<Server>(
      cluster_, ServerOptions{.job_name = "ps", .task_index = 0, .session_gc_seconds = 1});
  detail::Caller caller{.name = kMaster, .cluster_fingerprint = cluster_.fingerprint()};
  const std::string address = cluster_.task_address("ps", 0);
  const auto soon = [] { return std::chrono::steady_clock::now() + 20s; };
  auto master = std::make_unique<detail::RemoteWorker>(detail::make_channel(address, caller),
                                                       "/job:ps/replica:0/task:0");
  std::promise<void> stands;
  std::atomic<bool> told = false;
  const auto watch = master->watch([&](const detail::TaskStatus*, const std::exception_ptr&) {
    if (!told.exchange(true)) stands.set_value();
  });
  ASSERT_EQ(stands.get_future().wait_for(30s), std::future_status::ready);
  const std::string handle(32, 'a');
  master->create_session({.session = handle, .master = kMaster, .config = {}}, soon());
  EXPECT_THAT(master->status(soon()).sessions, ElementsAre(handle));
  ::testing::internal::CaptureStderr();
  watch->cancel();
  const auto end = soon();
  while (!master->status(soon()).sessions.empty() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(10ms);
  EXPECT_THAT(master->status(soon()).sessions, ::testing::IsEmpty());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("Closing 1 sessions of " + kMaster + ": it has been gone for 1 s"));
}

}  // namespace
}  // namespace kolo
