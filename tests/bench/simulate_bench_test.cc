// Predictions against closed forms, on links of round figures.
#include <bench/simulate_bench.h>

#include <gtest/gtest.h>

namespace kolo::bench {
namespace {

// 0.1 s of latency; bytes and additions cost nothing.
SimulatedNetwork latency_only(bool one_domain = true) {
  return {.name = "latency",
          .costs = {.inside = {0.1, 1e-30}, .between = {1, 1e-30}, .seconds_per_reduced_byte = 1e-30},
          .one_domain = one_domain};
}
SimulatedModel of_buckets(int buckets, double step_s) {
  return {.name = "m",
          .parameters = 1000.0 * buckets,
          .bytes_per_parameter = 4,
          .batch = 1,
          .step_s = step_s,
          .buckets = buckets};
}

TEST(Predict, AddsTheAllreduceOfOneBucketToTheStep) {
  // Two ranks exchange whole buffers: one message each way at the same time.
  const Prediction one = predict(of_buckets(1, 3), latency_only(), 2);
  EXPECT_EQ(one.algorithm, "recursive_doubling");
  EXPECT_NEAR(one.allreduce_s, 0.1, 1e-9);
  EXPECT_NEAR(one.step_s, 3.1, 1e-9);
  EXPECT_NEAR(one.overlapped_step_s, 3.1, 1e-9);  // complete at the very end: nothing to hide behind
}

TEST(Predict, HidesAllBucketsButTheLastBehindALongStep) {
  const Prediction four = predict(of_buckets(4, 30), latency_only(), 2);
  EXPECT_NEAR(four.allreduce_s, 0.4, 1e-9);
  EXPECT_NEAR(four.step_s, 30.4, 1e-9);
  EXPECT_NEAR(four.overlapped_step_s, 30.1, 1e-9);
}

TEST(Predict, WaitsForTheNetworkWhereTheStepIsShort) {
  // The first of four buckets is complete after the forward pass and a quarter of the backward pass.
  const Prediction four = predict(of_buckets(4, 0.03), latency_only(), 2);
  EXPECT_NEAR(four.overlapped_step_s, 0.01 + 0.02 / 4 + 0.4, 1e-9);
}

TEST(Predict, CountsTheLinksBetweenNodesOfEightRanks) {
  EXPECT_EQ(latency_only(false).topology(8).nodes(), 1);
  EXPECT_EQ(latency_only(false).topology(24).nodes(), 3);
  EXPECT_EQ(latency_only(true).topology(24).nodes(), 1);
  // Sixteen ranks: three steps inside a node and one between the two.
  EXPECT_NEAR(predict(of_buckets(1, 1), latency_only(false), 16).allreduce_s, 1.3, 1e-9);
}

}  // namespace
}  // namespace kolo::bench
