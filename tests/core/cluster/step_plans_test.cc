// Runs that wait for a plan that another one makes.
#include <gmock/gmock.h>

#include <future>
#include <stop_token>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/master/step_plans.h>

namespace kolo::detail {
namespace {

using ::testing::StrEq;
using ::testing::ThrowsMessage;

// A plan that is being made until the test lets it be.
class StepPlansBeingMade : public ::testing::Test {
 protected:
  StepPlansBeingMade() {
    maker_ = std::async(std::launch::async, [this] {
      return plans_.get({}, [this] {
        begun_.set_value();
        made_.get_future().wait();
        return plan();
      });
    });
    begun_.get_future().wait();
  }

  static std::shared_ptr<StepPlan> plan() {
    return std::make_shared<StepPlan>("a", [](const std::string&) { return false; });
  }
  std::shared_ptr<StepPlan> get(const Deadline& deadline) {
    return plans_.get(
        {}, [] { return plan(); }, deadline);
  }

  StepPlans plans_;
  std::promise<void> begun_, made_;
  std::future<std::shared_ptr<StepPlan>> maker_;
};

TEST_F(StepPlansBeingMade, AreWaitedForUntilTheDeadline) {
  EXPECT_THAT([&] { get(std::chrono::steady_clock::now() + std::chrono::milliseconds(20)); },
              ThrowsMessage<DeadlineExceededError>(StrEq("Timed out waiting for notification")));
  made_.set_value();
  EXPECT_EQ(get({}), maker_.get());
}

TEST_F(StepPlansBeingMade, AreWaitedForUntilAStopIsAskedFor) {
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] { return get({{}, stop.get_token()}); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  stop.request_stop();
  EXPECT_THROW(waiting.get(), CancelledError);
  made_.set_value();
}

}  // namespace
}  // namespace kolo::detail
