#include <kolo/collectives/schedule/gradient_buckets.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace kolo {
namespace {

using std::chrono::microseconds;

TraceEvent event(const std::string& category, int start_us, int end_us) {
  const std::chrono::steady_clock::time_point origin{};
  return {.name = "x",
          .category = category,
          .lane = "lane",
          .start = origin + microseconds(start_us),
          .end = origin + microseconds(end_us)};
}

ReductionOverlap overlap_of(std::vector<TraceEvent> events) {
  StepTrace trace;
  trace.events = std::move(events);
  return reduction_overlap(trace);
}

TEST(ReductionOverlap, HidesAReductionThatKernelsCover) {
  const auto overlap =
      overlap_of({event("MatMul", 0, 1000), event("BucketAllReduce", 100, 500), event("reduce", 120, 500)});
  EXPECT_DOUBLE_EQ(overlap.reducing.count(), 380e-6);
  EXPECT_NEAR(overlap.waiting.count(), 0, 1e-12);
  EXPECT_NEAR(overlap.hidden_share(), 1, 1e-9);
}

TEST(ReductionOverlap, CountsTheTimeInWhichNothingElseRuns) {
  // 400 µs of reductions; nothing runs from 1000 to 1100.
  const auto overlap = overlap_of({event("MatMul", 0, 1000), event("BucketAllReduce", 500, 700),
                                   event("reduce", 500, 700), event("BucketAllReduce", 900, 1100),
                                   event("reduce", 900, 1100), event("ApplyAdam", 1100, 1200)});
  EXPECT_NEAR(overlap.waiting.count(), 100e-6, 1e-12);
  EXPECT_NEAR(overlap.hidden_share(), 0.75, 1e-9);
}

TEST(ReductionOverlap, CountsTheWayToTheCommunicationThreadAsWaiting) {
  const auto overlap = overlap_of({event("BucketAllReduce", 0, 120), event("reduce", 20, 100)});
  EXPECT_NEAR(overlap.waiting.count(), 120e-6, 1e-12);
  EXPECT_EQ(overlap.hidden_share(), 0);
}

TEST(ReductionOverlap, CountsShardsThatAreScatteredAndGathered) {
  const auto overlap =
      overlap_of({event("BucketReduceScatter", 0, 100), event("reduce", 0, 100), event("ApplyAdam", 100, 200),
                  event("BucketAllGather", 200, 300), event("reduce", 200, 300)});
  EXPECT_EQ(overlap.waiting, overlap.reducing);
}

TEST(ReductionOverlap, CountsBucketsThatAreUnderWayTogetherOnce) {
  const auto overlap = overlap_of({event("BucketAllReduce", 0, 200), event("reduce", 0, 100),
                                   event("BucketAllReduce", 50, 200), event("reduce", 100, 200)});
  EXPECT_NEAR(overlap.waiting.count(), 200e-6, 1e-12);
}

TEST(ReductionOverlap, LeavesTheExecutorAFewMicrosecondsBetweenKernels) {
  const auto overlap = overlap_of({event("BucketAllReduce", 0, 100), event("reduce", 0, 100),
                                   event("Relu", 0, 50), event("Relu", 54, 80), event("Relu", 90, 100)});
  EXPECT_NEAR(overlap.waiting.count(), 10e-6, 1e-12);
}

TEST(ReductionOverlap, StepWithoutReductionsHidesAll) {
  EXPECT_EQ(overlap_of({event("MatMul", 0, 10)}).hidden_share(), 1);
}

}  // namespace
}  // namespace kolo
