#include <kolo/collectives/detail/step_state.h>

#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

TEST(StepState, TellsWhoWaitsForABucketWhenTheGroupBreaks) {
  StepState state(3);
  state.begin();
  int told = 0;
  for (const int bucket : {0, 2}) {
    Schedule::Done done = [&](std::exception_ptr error) {
      EXPECT_THROW(std::rethrow_exception(error), AbortedError);
      ++told;
    };
    state.submit(bucket, done);
  }
  state.break_off(std::make_exception_ptr(AbortedError("the others do not answer")));
  EXPECT_EQ(told, 2);
  state.finish_bucket(0, nullptr);  // the communication ends after all
  EXPECT_EQ(told, 2) << "nobody is told twice";
}

TEST(StepState, BeginsNoStepOnceItIsBroken) {
  StepState state(1);
  EXPECT_TRUE(state.begin_unless_broken());
  state.break_off(std::make_exception_ptr(UnavailableError("rank 1 is gone")));
  EXPECT_FALSE(state.begin_unless_broken());
  EXPECT_THROW(state.begin(), UnavailableError);
}

TEST(StepState, HasItsVerdictTogetherWithItsError) {
  StepState state(2);
  state.begin();
  const std::vector<std::string> reasons = {"", "end"};
  state.set_reasons(reasons);  // no bucket is over yet
  EXPECT_TRUE(state.error());
  EXPECT_TRUE(state.last_verdict().end_of_data);
}

TEST(StepState, DoesNotCountAStepOfWhichNothingWasSubmitted) {
  StepState state(1);
  state.begin();
  const auto ticket = state.ticket(0);
  state.begin();  // the other ranks have not met in the one before
  EXPECT_EQ(state.ticket(0), ticket);
  Schedule::Done done;
  state.submit(0, done);
  EXPECT_THROW(state.begin(), FailedPreconditionError) << "a bucket is on its way";
  state.finish_bucket(0, nullptr);
  state.begin();
  EXPECT_EQ(state.ticket(0), ticket + 1);
}

TEST(StepState, EndsTheDataInsideAStepOnlyBeforeTheFirstBucketIsQueued) {
  StepState state(2);
  EXPECT_FALSE(state.raise_end_of_data_in_step()) << "no step has begun";
  state.begin();
  Schedule::Done done;
  state.submit(1, done);
  EXPECT_TRUE(state.raise_end_of_data_in_step());
  state.submit(0, done);
  EXPECT_FALSE(state.raise_end_of_data_in_step());
}

}  // namespace
}  // namespace kolo::detail
