#include <kolo/collectives/algorithms/halving_doubling.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tests/collectives/algorithms/simulated_allreduce.h>

namespace kolo {
namespace {

std::int64_t messages(const char* algorithm, int ranks, int elements) {
  Arrays<float> arrays(ranks, std::vector<float>(elements, 1.0f));
  return SimulatedAllreduce{.algorithm = algorithm, .chunk_bytes = 1 << 20}.run(arrays);
}

TEST(HalvingDoubling, SendsTwoMessagesPerRankAndHalving) {
  EXPECT_EQ(messages("halving_doubling", 2, 1000), 2 * 2 * 1);
  EXPECT_EQ(messages("halving_doubling", 16, 1000), 16 * 2 * 4);
}

TEST(HalvingDoubling, SendsOneMessageToAndFromEachRankAboveThePowerOfTwo) {
  EXPECT_EQ(messages("halving_doubling", 11, 1000), 8 * 2 * 3 + 2 * 3);
}

TEST(RecursiveDoubling, SendsOneMessagePerRankAndDoubling) {
  EXPECT_EQ(messages("recursive_doubling", 16, 1000), 16 * 4);
  EXPECT_EQ(messages("recursive_doubling", 11, 1000), 8 * 3 + 2 * 3);
}

TEST(Tree, SendsOneMessageUpAndDownEachEdge) { EXPECT_EQ(messages("tree", 11, 1000), 2 * 10); }

// The sum of 2^k ones in f16 is exact in a tree of pairs; added one by one to the sum it would stop at 2048.
TEST(HalvingDoubling, RoundsOncePerDoubling) {
  for (const char* algorithm : {"halving_doubling", "recursive_doubling", "tree"}) {
    Arrays<Half> arrays(64, std::vector<Half>(3, Half(65.0f)));
    SimulatedAllreduce{.algorithm = algorithm}.run(arrays);
    for (const auto& array : arrays) EXPECT_THAT(array, testing::Each(Half(4160.0f))) << algorithm;
  }
}

TEST(Tree, AddsChildrenInF32) {
  Arrays<Half> arrays = {{Half(2048.0f)}, {Half(1.0f)}, {Half(1.0f)}};
  SimulatedAllreduce{.algorithm = "tree"}.run(arrays);
  for (const auto& array : arrays) EXPECT_THAT(array, testing::Each(Half(2050.0f)));
}

TEST(Tree, AverageOfHalvesDoesNotOverflowInTheLastSum) {
  for (const char* algorithm : {"halving_doubling", "recursive_doubling", "tree"}) {
    Arrays<Half> arrays(2, std::vector<Half>(3, Half(60000.0f)));
    SimulatedAllreduce{.algorithm = algorithm, .op = ReduceOp::average}.run(arrays);
    for (const auto& array : arrays) EXPECT_THAT(array, testing::Each(Half(60000.0f))) << algorithm;
  }
}

}  // namespace
}  // namespace kolo
