// A schedule of one rank: no traffic. What several ranks do stands in tests/mpi/schedule_test.cc.
#include <kolo/collectives/schedule/schedule.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

ScheduleSpec two_buckets() {
  return {.name = "test",
          .gradients = {{"b", Shape{3}, DType::f32}, {"w", Shape{100}, DType::f32}},
          .limits = {.first_bytes = 64, .bytes = 4096}};
}

void expect_no_error(std::exception_ptr error) { EXPECT_EQ(error, nullptr); }

TEST(Schedule, OfOneRankLeavesGradientsAsTheyAre) {
  Schedule schedule(two_buckets());
  schedule.compare();
  schedule.begin();
  ASSERT_EQ(schedule.buckets().size(), 2u);
  auto* w = reinterpret_cast<float*>(schedule.gradients()[1].bucket->memory()->data() +
                                     schedule.gradients()[1].offset);
  w[99] = 1.5f;
  int done = 0;
  for (const int bucket : {1, 0})
    schedule.buckets()[bucket].submit([&](std::exception_ptr error) {
      expect_no_error(error);
      ++done;
    });
  EXPECT_EQ(done, 2);
  EXPECT_EQ(w[99], 1.5f);
  EXPECT_FALSE(schedule.take_outcome().has(StepFlag::stop));
}

TEST(Schedule, MemoryIsZeroAndAligned) {
  Schedule schedule(two_buckets());
  for (int b = 0; b < 2; ++b) {
    const auto& memory = *schedule.buckets()[b].memory();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 64, 0u);
    EXPECT_TRUE(std::all_of(memory.data(), memory.data() + memory.bytes(),
                            [](std::byte x) { return x == std::byte{}; }));
  }
}

TEST(Schedule, OfOneRankStopsAfterTheStepThatCarriesTheRequest) {
  Schedule schedule(two_buckets());
  schedule.cast(StepFlag::stop);
  for (const bool stop : {true, false}) {
    schedule.begin();
    for (const int bucket : {0, 1}) schedule.buckets()[bucket].submit(expect_no_error);
    EXPECT_EQ(schedule.take_outcome().has(StepFlag::stop), stop);
  }
}

TEST(Schedule, OfOneRankEndsItsData) {
  Schedule schedule(two_buckets());
  schedule.leave(StepFlag::end_of_data, "");
  EXPECT_TRUE(schedule.take_outcome().has(StepFlag::end_of_data));
}

TEST(Schedule, WithoutGradientsStillStops) {
  Schedule schedule({.name = "empty"});
  schedule.compare();
  schedule.cast(StepFlag::stop);
  schedule.begin();
  schedule.end();
  EXPECT_TRUE(schedule.take_outcome().has(StepFlag::stop));
  schedule.leave(StepFlag::end_of_data, "");
  EXPECT_TRUE(schedule.take_outcome().has(StepFlag::end_of_data));
}

TEST(Schedule, RefusesABucketThatIsSubmittedTwice) {
  Schedule schedule(two_buckets());
  schedule.begin();
  schedule.buckets()[1].submit(expect_no_error);
  EXPECT_THROW(schedule.buckets()[1].submit(expect_no_error), InternalError);
}

TEST(Schedule, RefusesIntegersAndTheMaximum) {
  EXPECT_THROW(Schedule({.name = "x", .gradients = {{"g", Shape{1}, DType::i32}}}), InvalidArgumentError);
  EXPECT_THROW(Schedule({.name = "x", .reduction = ReduceOp::max}), InvalidArgumentError);
}

}  // namespace
}  // namespace kolo
