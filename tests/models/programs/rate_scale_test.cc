#include <kolo/models/programs/rate_scale.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

namespace kolo::models {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

RateScale::Options batch_of(std::int64_t global_batch, RateRule rule = RateRule::linear) {
  return {.rule = rule, .global_batch = global_batch, .rate = 0.1};
}

// A start that goes on from another one's state; `told`: what it says.
RateScale next_start(RateScale& before, const RateScale::Options& options, std::int64_t step,
                     std::string* told = nullptr) {
  RateScale now(options);
  now.state().restore(before.state().save());
  testing::internal::CaptureStderr();
  now.start(step);
  const std::string line = testing::internal::GetCapturedStderr();
  if (told != nullptr) *told = line;
  return now;
}

// Row 24 of the table of examples: batches of 32, from 4 ranks to 3.
TEST(RateScale, FollowsTheGlobalBatch) {
  RateScale first(batch_of(128));
  first.start(0);
  EXPECT_EQ(first.factor(0), 1);
  EXPECT_EQ(first.factor(500), 1);
  std::string told;
  const RateScale second = next_start(first, batch_of(96), 500, &told);
  EXPECT_THAT(told, HasSubstr("global batch 128 → 96: rate × 0.75 over 100 steps"));
  EXPECT_FLOAT_EQ(second.factor(500), 1 - .25F / 100);
  EXPECT_FLOAT_EQ(second.factor(549), .875F);
  EXPECT_FLOAT_EQ(second.factor(599), .75F);
  EXPECT_FLOAT_EQ(second.factor(9999), .75F);
}

TEST(RateScale, GoesByTheRoot) {
  RateScale first(batch_of(128, RateRule::root));
  first.start(0);
  const RateScale second = next_start(first, batch_of(32, RateRule::root), 10);
  EXPECT_FLOAT_EQ(second.factor(200), .5F);
}

TEST(RateScale, GoesBackWhereTheRanksDo) {
  RateScale first(batch_of(128));
  first.start(0);
  RateScale second = next_start(first, batch_of(96), 500);
  const RateScale third = next_start(second, batch_of(128), 700);
  EXPECT_FLOAT_EQ(third.factor(700), .75F + .25F / 100);
  EXPECT_EQ(third.factor(799), 1);
}

// Stopped half-way, it goes on from where it stands.
TEST(RateScale, DoesNotJumpWhereAChangeIsCut) {
  RateScale first(batch_of(100));
  first.start(0);
  RateScale second = next_start(first, batch_of(50), 0);
  EXPECT_FLOAT_EQ(second.factor(49), .75F);
  const RateScale third = next_start(second, batch_of(100), 50);
  EXPECT_FLOAT_EQ(third.factor(50), .75F + .25F / 100);
}

TEST(RateScale, SaysNothingWhereTheBatchStays) {
  RateScale first(batch_of(128));
  first.start(0);
  RateScale second = next_start(first, batch_of(64), 20);
  std::string told;
  const RateScale third = next_start(second, batch_of(64), 60, &told);
  EXPECT_THAT(told, IsEmpty());
  for (const std::int64_t step : {60, 80, 119, 200}) EXPECT_EQ(third.factor(step), second.factor(step));
}

TEST(RateScale, BeginsAnewWithARateOfTheUsersOwn) {
  RateScale first(batch_of(128));
  first.start(0);
  RateScale::Options other = batch_of(64);
  other.rate = 0.05;
  std::string told;
  const RateScale second = next_start(first, other, 10, &told);
  EXPECT_THAT(told, IsEmpty());
  EXPECT_EQ(second.factor(10), 1);
}

TEST(RateScale, KnowsTheBatchOfAFolderThatHasNoStateOfIt) {
  RateScale::Options options = batch_of(96);
  options.batch_of_folder = 128;
  RateScale scale(options);
  testing::internal::CaptureStderr();
  scale.start(40);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("global batch 128 → 96"));
  EXPECT_FLOAT_EQ(scale.factor(139), .75F);
}

TEST(RateScale, RefusesWhatIsNoState) {
  RateScale scale(batch_of(96));
  for (const char* text : {"", "{}", R"({"batch":0,"begin":0,"first_batch":1,"from":1,"rate":1})"})
    EXPECT_THAT([&] { scale.state().restore(text); },
                ThrowsMessage<DataLossError>(HasSubstr("not the state of a learning rate")));
}

}  // namespace
}  // namespace kolo::models
