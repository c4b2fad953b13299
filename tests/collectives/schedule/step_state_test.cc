#include <kolo/collectives/schedule/step_state.h>

#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

TEST(StepState, TellsWhoWaitsForABucketWhenTheGroupBreaks) {
  StepState state(3);
  state.begin();
  int told = 0;
  for (const int bucket : {0, 2}) {
    SlotDone done = [&](std::exception_ptr error) {
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
  SlotDone done;
  state.submit(0, done);
  EXPECT_THROW(state.begin(), FailedPreconditionError) << "a bucket is on its way";
  state.finish_bucket(0, nullptr);
  state.begin();
  EXPECT_EQ(state.ticket(0), ticket + 1);
}

// Of two slots the second is a gathering, which this step leaves out.
TEST(StepState, EndsWithoutWhatAStepMayLeaveOut) {
  StepState state(2);
  for (int step = 0; step < 2; ++step) {
    state.begin();
    state.raise_stop();
    state.raise_save();
    SlotDone done;
    state.submit(0, done);
    state.end(1);
    EXPECT_TRUE(state.is_under_way()) << "a bucket is on its way";
    StepFlags flags;
    EXPECT_TRUE(state.begin_bucket(0, flags));
    state.received(0, flags);
    state.finish_bucket(0, nullptr);
    state.end(1);
    EXPECT_FALSE(state.is_under_way());
    EXPECT_TRUE(state.last_verdict().stop);
    EXPECT_TRUE(state.take_save());
  }
}

TEST(StepState, DoesNotEndAStepOfWhichNothingWasSubmitted) {
  StepState state(2);
  state.begin();
  state.end(1);
  EXPECT_TRUE(state.is_under_way());
  EXPECT_TRUE(state.raise_end_of_data_in_step());
}

TEST(StepState, EndsTheDataInsideAStepOnlyBeforeTheFirstBucketIsQueued) {
  StepState state(2);
  EXPECT_FALSE(state.raise_end_of_data_in_step()) << "no step has begun";
  state.begin();
  SlotDone done;
  state.submit(1, done);
  EXPECT_TRUE(state.raise_end_of_data_in_step());
  state.submit(0, done);
  EXPECT_FALSE(state.raise_end_of_data_in_step());
}

// A whole step of two buckets, with what this rank sends in each; the others send nothing.
std::vector<StepFlags> step_of_two_buckets(StepState& state) {
  std::vector<StepFlags> sent(2);
  state.begin();
  SlotDone done;
  for (const int bucket : {0, 1}) {
    state.submit(bucket, done);
    EXPECT_TRUE(state.begin_bucket(bucket, sent[bucket]));
    state.received(bucket, sent[bucket]);
    state.finish_bucket(bucket, nullptr);
  }
  return sent;
}

TEST(StepState, SendsARequestToSaveWithTheFirstBucketOfOneStep) {
  StepState state(2);
  state.raise_save();
  auto sent = step_of_two_buckets(state);
  EXPECT_TRUE(sent[0].save);
  EXPECT_FALSE(sent[1].save);
  EXPECT_TRUE(state.take_save());
  EXPECT_FALSE(state.take_save()) << "it is true once";
  sent = step_of_two_buckets(state);
  EXPECT_FALSE(sent[0].save);
  EXPECT_FALSE(state.take_save());
}

TEST(StepState, ForgetsARequestToSaveThatNoStepHasTaken) {
  StepState state(2);
  state.raise_save();
  EXPECT_FALSE(state.take_save());
  EXPECT_FALSE(step_of_two_buckets(state)[0].save);
}

TEST(StepState, DoesNotSaveAfterAStepThatIsVoid) {
  StepState state(1);
  state.begin();
  SlotDone done;
  state.submit(0, done);
  StepFlags flags;
  state.begin_bucket(0, flags);
  state.received(0, {.end_of_data = true, .save = true});
  const std::vector<std::string> reasons = {"", "end"};
  state.set_reasons(reasons);
  state.finish_bucket(0, nullptr);
  EXPECT_FALSE(state.take_save());
}

TEST(StepFlags, ArriveInEveryTypeOfBucket) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    std::vector<std::byte> bytes(kFlagElements * size_of(dtype));
    write_flags(dtype, bytes.data(), {.stop = true, .save = true});
    const StepFlags read = read_flags(dtype, bytes.data());
    EXPECT_TRUE(read.stop && read.save);
    EXPECT_FALSE(read.end_of_data || read.failed);
  }
}

}  // namespace
}  // namespace kolo::detail
