#include <kolo/collectives/schedule/step_slots.h>

#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

TEST(StepSlots, TellsWhoWaitsForABucketWhenTheGroupBreaks) {
  StepSlots slots(3);
  slots.begin();
  int told = 0;
  for (const int bucket : {0, 2}) {
    SlotDone done = [&](std::exception_ptr error) {
      EXPECT_THROW(std::rethrow_exception(error), AbortedError);
      ++told;
    };
    slots.submit(bucket, done);
  }
  slots.break_off(std::make_exception_ptr(AbortedError("the others do not answer")));
  EXPECT_EQ(told, 2);
  slots.finish_slot(0, nullptr);  // the communication ends after all
  EXPECT_EQ(told, 2) << "nobody is told twice";
}

TEST(StepSlots, BeginsNoStepOnceItIsBroken) {
  StepSlots slots(1);
  EXPECT_TRUE(slots.begin_unless_broken());
  slots.break_off(std::make_exception_ptr(UnavailableError("rank 1 is gone")));
  EXPECT_FALSE(slots.begin_unless_broken());
  EXPECT_THROW(slots.begin(), UnavailableError);
}

TEST(StepSlots, HasItsVerdictTogetherWithItsError) {
  StepSlots slots(2);
  slots.begin();
  const std::vector<std::string> reasons = {"", "end"};
  slots.set_reasons(reasons);  // no bucket is over yet
  EXPECT_TRUE(slots.error());
  EXPECT_TRUE(slots.outcome().has(StepFlag::end_of_data));
}

TEST(StepSlots, DoesNotCountAStepOfWhichNothingWasSubmitted) {
  StepSlots slots(1);
  slots.begin();
  const auto ticket = slots.ticket(0);
  slots.begin();  // the other ranks have not met in the one before
  EXPECT_EQ(slots.ticket(0), ticket);
  SlotDone done;
  slots.submit(0, done);
  EXPECT_THROW(slots.begin(), FailedPreconditionError) << "a bucket is on its way";
  slots.finish_slot(0, nullptr);
  slots.begin();
  EXPECT_EQ(slots.ticket(0), ticket + 2) << "the slot, and the end of the step";
}

// Of two slots the second is a gathering, which this step leaves out.
TEST(StepSlots, EndsWithoutWhatAStepMayLeaveOut) {
  StepSlots slots(2);
  for (int step = 0; step < 2; ++step) {
    slots.begin();
    slots.raise(StepFlag::stop);
    slots.raise(StepFlag::save);
    SlotDone done;
    slots.submit(0, done);
    slots.end(1);
    EXPECT_TRUE(slots.is_under_way()) << "a bucket is on its way";
    StepFlags flags;
    EXPECT_TRUE(slots.begin_slot(0, flags));
    slots.received(0, flags);
    slots.finish_slot(0, nullptr);
    slots.end(1);
    EXPECT_FALSE(slots.is_under_way());
    EXPECT_EQ(slots.take_outcome(), (StepFlags{StepFlag::stop, StepFlag::save}));
  }
}

TEST(StepSlots, DoesNotEndAStepOfWhichNothingWasSubmitted) {
  StepSlots slots(2);
  slots.begin();
  slots.end(1);
  EXPECT_TRUE(slots.is_under_way());
  EXPECT_TRUE(slots.raise_end_of_data_in_step());
}

TEST(StepSlots, EndsTheDataInsideAStepOnlyBeforeTheFirstBucketIsQueued) {
  StepSlots slots(2);
  EXPECT_FALSE(slots.raise_end_of_data_in_step()) << "no step has begun";
  slots.begin();
  SlotDone done;
  slots.submit(1, done);
  EXPECT_TRUE(slots.raise_end_of_data_in_step());
  slots.submit(0, done);
  EXPECT_FALSE(slots.raise_end_of_data_in_step());
}

// A whole step of two buckets, with what this rank sends in each; the others send nothing.
std::vector<StepFlags> step_of_two_buckets(StepSlots& slots) {
  std::vector<StepFlags> sent(2);
  slots.begin();
  SlotDone done;
  for (const int bucket : {0, 1}) {
    slots.submit(bucket, done);
    EXPECT_TRUE(slots.begin_slot(bucket, sent[bucket]));
    slots.received(bucket, sent[bucket]);
    slots.finish_slot(bucket, nullptr);
  }
  return sent;
}

TEST(StepSlots, SendsARequestToSaveWithTheFirstBucketOfOneStep) {
  StepSlots slots(2);
  slots.raise(StepFlag::save);
  auto sent = step_of_two_buckets(slots);
  EXPECT_TRUE(sent[0].has(StepFlag::save));
  EXPECT_FALSE(sent[1].has(StepFlag::save));
  EXPECT_TRUE(slots.take_outcome().has(StepFlag::save));
  EXPECT_TRUE(slots.take_outcome().empty()) << "it is told once";
  sent = step_of_two_buckets(slots);
  EXPECT_FALSE(sent[0].has(StepFlag::save));
  EXPECT_FALSE(slots.take_outcome().has(StepFlag::save));
}

TEST(StepSlots, ForgetsARequestToSaveThatNoStepHasTaken) {
  StepSlots slots(2);
  slots.raise(StepFlag::save);
  EXPECT_FALSE(slots.take_outcome().has(StepFlag::save));
  EXPECT_FALSE(step_of_two_buckets(slots)[0].has(StepFlag::save));
}

TEST(StepSlots, DoesNotSaveAfterAStepThatIsVoid) {
  StepSlots slots(1);
  slots.begin();
  SlotDone done;
  slots.submit(0, done);
  StepFlags flags;
  slots.begin_slot(0, flags);
  slots.received(0, {StepFlag::end_of_data, StepFlag::save});
  const std::vector<std::string> reasons = {"", "end"};
  slots.set_reasons(reasons);
  slots.finish_slot(0, nullptr);
  EXPECT_FALSE(slots.take_outcome().has(StepFlag::save));
}

TEST(StepSlots, KnowsWhetherAStepIsUnderWayForTheSession) {
  StepSlots slots(1);
  EXPECT_FALSE(slots.is_inside());
  slots.begin();
  EXPECT_TRUE(slots.is_inside());
  slots.end(1);
  EXPECT_FALSE(slots.is_inside());
  slots.begin_unless_broken();
  EXPECT_FALSE(slots.is_inside()) << "a step that tells of a failure";
}

}  // namespace
}  // namespace kolo::detail
