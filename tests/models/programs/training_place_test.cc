// How many steps a training has left, whatever the size of those before.
#include <kolo/models/programs/training_place.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kolo::models {
namespace {

using testing::HasSubstr;

EpochCount steps_of(std::int64_t step_size, EpochEnd end = EpochEnd::drop, int passes = 1) {
  return {{.samples = 7000, .step_size = step_size, .epoch_end = end}, passes};
}

TrainingPlace at(std::int64_t step, std::int64_t epoch, std::int64_t sample) {
  return {.step = step, .position = BatchPosition{.epoch = epoch, .sample = sample}};
}

TEST(EpochCount, CountsFromTheBeginning) {
  EXPECT_EQ(steps_of(64).last_step({}, 2), 2 * 109);
  EXPECT_EQ(steps_of(64, EpochEnd::fill).last_step({}, 2), 2 * 110);
  EXPECT_EQ(steps_of(7000).last_step({}, 3), 3);
}

TEST(EpochCount, CountsSamplesWhereStepsHadAnotherSize) {
  const TrainingPlace half = at(35, 0, 3500);
  EXPECT_EQ(steps_of(100).last_step(half, 2), 140) << "as without a stop";
  EXPECT_EQ(steps_of(500).last_step(half, 2), 35 + 7 + 14);
  EXPECT_EQ(steps_of(1000).last_step(half, 1), 35 + 3) << "500 samples are left out";
  EXPECT_EQ(steps_of(1000, EpochEnd::fill).last_step(half, 1), 35 + 4);
  EXPECT_EQ(steps_of(10).last_step(at(700, 5, 0), 5), 700);
  EXPECT_EQ(steps_of(10).last_step(at(700, 5, 20), 2), 700);
}

TEST(EpochCount, JoinsBatchesOfSeveralPasses) {
  EXPECT_EQ(steps_of(1000, EpochEnd::drop, 2).last_step({}, 2), 7) << "14 batches";
  EXPECT_EQ(steps_of(1000, EpochEnd::drop, 2).last_step(at(3, 0, 6000), 2), 7);
  EXPECT_EQ(steps_of(7000, EpochEnd::drop, 4).last_step({}, 1), 1) << "one at least";
}

TEST(EpochCount, CountsStepsWhereACheckpointTellsNoPosition) {
  const TrainingPlace unknown{.step = 40, .position = std::nullopt};
  EXPECT_EQ(steps_of(100).last_step(unknown, 2), 140);
  EXPECT_EQ(steps_of(100).last_step({.step = 150, .position = std::nullopt}, 2), 150);
  EXPECT_DOUBLE_EQ(steps_of(100).done(unknown), 40 / 70.0);
}

TEST(EpochCount, TellsHowMuchOfAnEpochIsOver) {
  EXPECT_DOUBLE_EQ(steps_of(100).done(at(35, 0, 3500)), 0.5);
  EXPECT_DOUBLE_EQ(steps_of(100).done(at(9, 2, 0)), 2);
  EXPECT_DOUBLE_EQ(steps_of(64).done(at(1, 0, 64)), 64 / 7000.0);
  EXPECT_DOUBLE_EQ(steps_of(1000).done(at(70, 1, 70)), 1.01) << "steps before had another size";
}

TEST(EpochCount, CountsStepsBeforeAStartThatHasNoPosition) {
  const TrainingPlace unknown{.step = 40, .position = std::nullopt};
  EXPECT_DOUBLE_EQ(steps_of(100).done(at(45, 0, 500), unknown), 40 / 70.0 + 5 / 70.0);
  EXPECT_DOUBLE_EQ(steps_of(100).done(at(45, 0, 500), at(40, 0, 0)), 5 / 70.0);
}

TEST(EpochCount, SaysWhyNothingIsLeft) {
  EXPECT_EQ(steps_of(64).text(at(218, 2, 0), 2), "has seen 2 of --epochs 2");
  EXPECT_EQ(steps_of(100).text(at(245, 3, 3500), 2), "has seen 3.5 of --epochs 2");
  EXPECT_THAT(
      steps_of(7000).text(at(4, 0, 256), 1),
      HasSubstr("has seen 0.04 of --epochs 1, and the last 6744 samples are too few for a step of 7000"));
}

TEST(EpochCount, KnowsThePlaceWhereTheSourceBegins) {
  EXPECT_TRUE(steps_of(100).is_at(at(35, 0, 3500), {.epoch = 0, .sample = 3500, .seed = 1}));
  EXPECT_TRUE(steps_of(5000).is_at(at(35, 0, 3500), {.epoch = 1, .sample = 0}));
  EXPECT_FALSE(steps_of(100).is_at(at(35, 0, 3500), {.epoch = 0, .sample = 3400}));
}

}  // namespace
}  // namespace kolo::models
