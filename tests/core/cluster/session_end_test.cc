// What close(), a client that goes, and a reset end in a master.
#include <gmock/gmock.h>

#include <future>

#include "local_master_fixture.h"

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class SessionEndTest : public LocalMasterTest {
 protected:
  // Stands for a task that does not answer: `asked` is told that it was asked.
  static void wait_for_stop(const Deadline& deadline, std::atomic<bool>& asked) {
    asked = true;
    if (!soon([&] { return deadline.stop().stop_requested(); })) return;
    throw CancelledError("the call was cancelled");
  }
  void expect_close_ends_the_run(const std::string& session, const std::atomic<bool>& asked) {
    auto step = std::async(std::launch::async, [&] { return run(session); });
    ASSERT_TRUE(soon([&] { return asked.load(); }));
    const auto began = Clock::now();
    close_session(master(), session, {});
    EXPECT_THAT([&] { step.get(); }, ThrowsMessage<CancelledError>(HasSubstr("Session::close()")));
    EXPECT_LT(Clock::now() - began, kTestPatience / 2);
  }
};

TEST_F(SessionEndTest, CloseCancelsStepsEverywhere) {
  ps().on_run = own().on_run = ScriptedWorker::never;
  const std::string session = open();
  auto step = std::async(std::launch::async, [&] { return run(session); });
  ASSERT_TRUE(soon([&] { return own().runs().size() == 1; }));
  close_session(master(), session, {});
  ASSERT_EQ(step.wait_for(kTestPatience), std::future_status::ready);
  EXPECT_THAT([&] { step.get(); }, ThrowsMessage<CancelledError>(HasSubstr("Session::close()")));
  EXPECT_EQ(ps().count("delete " + session), 1);
  EXPECT_EQ(ps().count("deregister"), 0);
}

TEST_F(SessionEndTest, CloseEndsARunWhosePartsAreBeingRegistered) {
  std::atomic<bool> asked = false;
  ps().on_register = [&](const PartRequest&, const Deadline& deadline) { wait_for_stop(deadline, asked); };
  expect_close_ends_the_run(open(), asked);
}

TEST_F(SessionEndTest, CloseEndsARunThatLooksForATaskThatWasLost) {
  const std::string session = open();
  std::atomic<bool> asked = false;
  ps().go_down("no answer for 4 s");
  ps().on_status = [&](const Deadline& deadline) { wait_for_stop(deadline, asked); };
  expect_close_ends_the_run(session, asked);
}

TEST_F(SessionEndTest, ClosesSessionsWhoseClientIsGone) {
  options_.session_gc = 100ms;
  ::testing::internal::CaptureStderr();
  const std::string watched = open(), left = open();
  const auto watch = master().watch(watched, [](std::exception_ptr) {});
  EXPECT_TRUE(soon([&] { return ps().count("delete " + left) == 1; }));
  EXPECT_THAT(run(watched).fetches, SizeIs(1));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("Closing session " + left + ": its client of this process has been gone for"),
                    Not(HasSubstr("Closing session " + watched))));
  watch->cancel();
}

TEST_F(SessionEndTest, SaysThatAClientHasLeftWithoutClosingItsSession) {
  const std::string closed = open(), left = open();
  const auto of_closed = master().watch(closed, [](std::exception_ptr) {}),
             of_left = master().watch(left, [](std::exception_ptr) {});
  ::testing::internal::CaptureStderr();
  close_session(master(), closed, {});
  of_closed->cancel();
  of_left->cancel();
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr("Session " + left + ": its client of this process is gone"), Not(HasSubstr(closed))));
}

TEST_F(SessionEndTest, WatchEndsOnceWithTheSession) {
  const std::string session = open();
  std::atomic<int> ended = 0;
  const auto watch = master().watch(session, [&](std::exception_ptr) { ++ended; });
  close_session(master(), session, {});
  watch->cancel();
  EXPECT_EQ(ended, 1);
}

TEST_F(SessionEndTest, ResetClosesSessionsAndDropsContainersWhereTasksAreUp) {
  const std::string session = open();
  peers_->at(kWorker1).go_down();
  ::testing::internal::CaptureStderr();
  reset(master(), {"exp1"}, {}, Clock::now() + kTestPatience);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("Reset skips /job:worker/replica:0/task:1"));
  EXPECT_EQ(ps().count("containers exp1"), 1);
  EXPECT_THAT([&] { run(session); }, ThrowsMessage<AbortedError>(HasSubstr("is not found")));
}

}  // namespace
}  // namespace kolo::detail
