#include <kolo/core/training/hooks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using testing::ThrowsMessage;
using Clock = StepTimer::Clock;

const Clock::time_point kStart = Clock::time_point() + std::chrono::hours(1);
constexpr auto second = std::chrono::seconds(1);

TEST(StepTimer, IsDueAtTheFirstQuestionAndThenEveryNSteps) {
  StepTimer timer({}, 3);
  EXPECT_TRUE(timer.is_due(4));
  timer.fired(4);
  EXPECT_FALSE(timer.is_due(4));
  EXPECT_FALSE(timer.is_due(6));
  EXPECT_TRUE(timer.is_due(7));
  EXPECT_TRUE(timer.is_due(9));
}

TEST(StepTimer, IsDueAgainWhenTheSecondsHavePassed) {
  StepTimer timer(2.5, {});
  timer.fired(1, kStart);
  EXPECT_FALSE(timer.is_due(2, kStart + 2 * second));
  EXPECT_TRUE(timer.is_due(2, kStart + 3 * second));
}

TEST(StepTimer, IsNeverDueTwiceForOneStep) {
  StepTimer timer(1.0, {});
  timer.fired(1, kStart);
  EXPECT_FALSE(timer.is_due(1, kStart + 5 * second));
}

TEST(StepTimer, TakesExactlyOneOfSecondsAndSteps) {
  EXPECT_THAT([] { StepTimer(1.0, 1); },
              ThrowsMessage<InvalidArgumentError>("Can not provide both every_secs and every_steps."));
  EXPECT_THAT([] { StepTimer({}, {}); },
              ThrowsMessage<InvalidArgumentError>("Either every_secs or every_steps should be provided."));
}

TEST(StepTimer, RefusesNumbersThatAreNotAboveZero) {
  EXPECT_THROW(StepTimer({}, 0), InvalidArgumentError);
  EXPECT_THROW(StepTimer({}, -1), InvalidArgumentError);
  EXPECT_THROW(StepTimer(0.0, {}), InvalidArgumentError);
  EXPECT_THROW(StepTimer(std::nan(""), {}), InvalidArgumentError);
}

}  // namespace
}  // namespace kolo
