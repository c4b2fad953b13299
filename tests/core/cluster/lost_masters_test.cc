#include <kolo/core/cluster/lost_masters.h>

#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include <kolo/core/cluster/rpc/channel.h>

#include "tests/core/cluster/servers_in_process.h"
#include "tests/core/cluster/typed_calls.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;
using detail::LostMasters;
using detail::TaskProcess;
using detail::WatcherEvent;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kMaster = "/job:worker/replica:0/task:0";
const TaskProcess kBefore{.task = kMaster, .incarnation = 11}, kAfter{.task = kMaster, .incarnation = 22};

class LostMastersTest : public ::testing::Test {
 protected:
  std::atomic<int> closed_ = 0;
  std::promise<TaskProcess> first_, restarted_;
  LostMasters masters_{50ms,
                       {.gone =
                            [this](const TaskProcess& master, std::chrono::seconds) {
                              if (++closed_ == 1) first_.set_value(master);
                            },
                        .restarted =
                            [this](const TaskProcess& master) {
                              if (master == kAfter) restarted_.set_value(master);
                            }}};
};

TEST_F(LostMastersTest, AreClosedOnceWhenTheyStayAway) {
  masters_.hear(kBefore, WatcherEvent::connected);
  masters_.hear(kBefore, WatcherEvent::lost);
  auto first = first_.get_future();
  ASSERT_EQ(first.wait_for(30s), std::future_status::ready);
  EXPECT_EQ(first.get(), kBefore);
  EXPECT_EQ(closed_, 1);
}

TEST_F(LostMastersTest, AreLeftAloneWhenTheyHaveComeBack) {
  masters_.hear(kBefore, WatcherEvent::connected);
  masters_.hear(kBefore, WatcherEvent::lost);
  masters_.hear(kBefore, WatcherEvent::connected);
  // The new watch before the end of the old one.
  const TaskProcess other{.task = "/job:worker/replica:0/task:1", .incarnation = 33};
  masters_.hear(other, WatcherEvent::connected);
  masters_.hear(other, WatcherEvent::connected);
  masters_.hear(other, WatcherEvent::lost);
  auto first = first_.get_future();
  EXPECT_EQ(first.wait_for(300ms), std::future_status::timeout);
}

TEST_F(LostMastersTest, StayAwayWhenAnotherProcessHasTheirPlace) {
  masters_.hear(kBefore, WatcherEvent::connected);
  masters_.hear(kBefore, WatcherEvent::lost);
  masters_.hear(kAfter, WatcherEvent::connected);
  auto restarted = restarted_.get_future();
  ASSERT_EQ(restarted.wait_for(30s), std::future_status::ready);
  auto first = first_.get_future();
  ASSERT_EQ(first.wait_for(30s), std::future_status::ready);
  EXPECT_EQ(first.get(), kBefore);
}

class SessionsOfLostMasters : public ServersTest {
 protected:
  static detail::Deadline soon() { return std::chrono::steady_clock::now() + 20s; }
  // The task ps0 as a process of the master's sees it.
  std::unique_ptr<detail::RemoteWorker> ps0(std::uint64_t incarnation) {
    return std::make_unique<detail::RemoteWorker>(
        detail::make_channel(
            cluster_.task_address("ps", 0),
            {.name = kMaster, .cluster_fingerprint = cluster_.fingerprint(), .incarnation = incarnation}),
        "/job:ps/replica:0/task:0");
  }
  // A watch that stands.
  static std::shared_ptr<detail::Call> watch(detail::RemoteWorker& worker) {
    struct Stands {
      std::promise<void> promise;
      std::atomic<bool> told = false;
    };
    const auto stands = std::make_shared<Stands>();
    auto call = worker.watch([stands](const detail::TaskStatus*, const std::exception_ptr&) {
      if (!stands->told.exchange(true)) stands->promise.set_value();
    });
    EXPECT_EQ(stands->promise.get_future().wait_for(30s), std::future_status::ready);
    return call;
  }
};

TEST_F(SessionsOfLostMasters, EndOnTheOtherTasks) {
  servers_.erase("ps0");
  servers_["ps0"] = std::make_unique<Server>(
      cluster_, ServerOptions{.job_name = "ps", .task_index = 0, .session_gc_seconds = 1});
  const auto master = ps0(11);
  const auto watching = watch(*master);
  const std::string handle(32, 'a');
  create_session(*master, {.session = handle, .master = kMaster, .config = {}, .master_incarnation = 11},
                 soon());
  EXPECT_THAT(status_of(*master, soon()).sessions, ElementsAre(handle));
  ::testing::internal::CaptureStderr();
  watching->cancel();
  const auto end = soon();
  while (!status_of(*master, soon()).sessions.empty() && std::chrono::steady_clock::now() < *end)
    std::this_thread::sleep_for(10ms);
  EXPECT_THAT(status_of(*master, soon()).sessions, ::testing::IsEmpty());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("Closing 1 sessions of " + kMaster + ": it has been gone for 1 s"));
}

// Killed and back within the minute that a lost master is waited for: what it had is of no use to anybody.
TEST_F(SessionsOfLostMasters, EndWithTheFirstWatchOfTheProcessThatFollows) {
  const auto before = ps0(11), after = ps0(22);
  const auto first_watch = watch(*before);
  const std::string handle(32, 'a'), next_handle(32, 'b'), others_handle(32, 'c');
  create_session(*before, {.session = handle, .master = kMaster, .config = {}, .master_incarnation = 11},
                 soon());
  create_session(*before,
                 {.session = others_handle,
                  .master = "/job:worker/replica:0/task:1",
                  .config = {},
                  .master_incarnation = 11},
                 soon());
  first_watch->cancel();
  ::testing::internal::CaptureStderr();
  create_session(*after, {.session = next_handle, .master = kMaster, .config = {}, .master_incarnation = 22},
                 soon());
  const auto second_watch = watch(*after);
  const auto end = soon();
  while (status_of(*after, soon()).sessions.size() > 2 && std::chrono::steady_clock::now() < *end)
    std::this_thread::sleep_for(10ms);
  EXPECT_THAT(status_of(*after, soon()).sessions, ElementsAre(next_handle, others_handle));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("Closing 1 sessions of " + kMaster + ": it has been restarted"));
  second_watch->cancel();
}

}  // namespace
}  // namespace kolo
