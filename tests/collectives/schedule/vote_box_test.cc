#include <kolo/collectives/schedule/vote_box.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<StepFlag> all_flags() {
  std::vector<StepFlag> flags;
  for (std::size_t i = 0; i < kStepFlags; ++i) flags.push_back(static_cast<StepFlag>(i));
  return flags;
}

TEST(StepFlags, ArriveInEveryTypeOfBucket) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const StepFlag flag : all_flags()) {
      std::vector<std::byte> bytes(kStepFlags * size_of(dtype));
      write_flags(dtype, bytes.data(), {flag});
      EXPECT_EQ(read_flags(dtype, bytes.data()), StepFlags{flag});
    }
}

TEST(StepFlags, ArriveBesideTheNumberOfRows) {
  for (const StepFlag flag : all_flags()) {
    FlagNumbers numbers;
    write_flags(numbers, {flag});
    EXPECT_EQ(read_flags(numbers), StepFlags{flag});
  }
}

TEST(VoteBox, SendsAWishWithTheFirstSlotOfOneStep) {
  VoteBox box({});
  box.begin_step();
  box.raise(StepFlag::stop);
  EXPECT_TRUE(box.flags_for(1).empty());
  EXPECT_EQ(box.flags_for(0), StepFlags{StepFlag::stop});
  box.begin_step();
  EXPECT_TRUE(box.flags_for(0).empty());
}

TEST(VoteBox, SendsWhatVoidsTheStepWithTheNextSlot) {
  VoteBox box({});
  box.begin_step();
  EXPECT_TRUE(box.flags_for(0).empty());
  box.raise(StepFlag::failed, "a bad file");
  EXPECT_EQ(box.flags_for(1), StepFlags{StepFlag::failed});
  EXPECT_EQ(box.flags_for(2), StepFlags{StepFlag::failed}) << "a failure is final";
  EXPECT_EQ(box.own_reason(7), "failed 7 a bad file");
}

TEST(VoteBox, TellsTheOutcomeOnceAndOfTheStepThatIsOver) {
  VoteBox box({});
  box.begin_step();
  box.received(0, {StepFlag::stop, StepFlag::save});
  EXPECT_TRUE(box.outcome().empty());
  box.end_step(false);
  EXPECT_EQ(box.take_outcome(), (StepFlags{StepFlag::stop, StepFlag::save}));
  EXPECT_TRUE(box.take_outcome().empty());
}

TEST(VoteBox, ForgetsAWishThatNoStepHasTakenAndKeepsAFailure) {
  VoteBox box({});
  box.raise(StepFlag::save);
  box.raise(StepFlag::failed, "a bad file");
  box.take_outcome();
  box.begin_step();
  EXPECT_EQ(box.flags_for(0), StepFlags{StepFlag::failed});
}

TEST(VoteBox, HasNoSaveAfterAStepThatIsVoid) {
  VoteBox box({});
  box.begin_step();
  box.received(0, {StepFlag::save, StepFlag::end_of_data});
  const std::vector<std::string> reasons = {"", "end"};
  const VoteBox::Reasons found = box.read_reasons(reasons, 1);
  EXPECT_EQ(found.failure, nullptr);
  EXPECT_THAT([&] { std::rethrow_exception(found.end_of_data); },
              ThrowsMessage<OutOfRangeError>(HasSubstr("end of data on rank 1")));
  EXPECT_EQ(box.take_outcome(), StepFlags{StepFlag::end_of_data});
  box.end_step(true);  // the slots behind it
  EXPECT_TRUE(box.take_outcome().empty()) << "what was taken stays taken";
  EXPECT_EQ(box.exchanges(), 1);
}

TEST(VoteBox, CallsRanksByTheirNumbersInTheJob) {
  VoteBox box({2, 5});
  box.begin_step();
  const std::vector<std::string> reasons = {"", "failed 3 no more disk"};
  EXPECT_THAT([&] { std::rethrow_exception(box.read_reasons(reasons, 3).failure); },
              ThrowsMessage<AbortedError>("rank 5 failed in step 3: no more disk"));
}

TEST(VoteBox, DecidesAloneWhereThereIsNothingToTravelWith) {
  VoteBox box({});
  box.raise(StepFlag::stop);
  box.raise(StepFlag::save);
  box.begin_step();
  box.end_step_alone();
  EXPECT_EQ(box.take_outcome(), StepFlags{StepFlag::stop}) << "a save needs all ranks";
}

}  // namespace
}  // namespace kolo::detail
