#include <kolo/collectives/algorithms/cost_model.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Latency 1 s inside and 100 s between nodes; bytes cost 1 s and 10 s; a reduced byte 1/2 s.
const CostModel kModel{.inside = {1, 1}, .between = {100, 10}, .seconds_per_reduced_byte = 0.5};

Topology nodes_of(int ranks_each, int nodes) {
  std::vector<int> leaders(ranks_each * nodes);
  for (int rank = 0; rank < ranks_each * nodes; ++rank) leaders[rank] = rank - rank % ranks_each;
  return Topology(leaders);
}

// 3 steps of a quarter that is reduced, 3 that are not.
TEST(CostModel, RingTakesTwoStepsPerOtherRank) {
  EXPECT_DOUBLE_EQ(predicted_seconds(kModel, "ring", Topology::one_node(4), 8), 6 * (1 + 2) + 3 * 1);
}

TEST(CostModel, RingGoesAtThePaceOfTheSlowestLink) {
  EXPECT_DOUBLE_EQ(predicted_seconds(kModel, "ring", nodes_of(2, 2), 8), 6 * (100 + 20) + 3 * 1);
}

// Halves of 4 and 2 bytes, there and back.
TEST(CostModel, HalvingDoublingHalvesWhatItSends) {
  EXPECT_DOUBLE_EQ(predicted_seconds(kModel, "halving_doubling", Topology::one_node(4), 8),
                   2 * (1 + 4) + 2 + 2 * (1 + 2) + 1);
}

// At distance 2 both ranks of a node send to the other node at once.
TEST(CostModel, RanksOfANodeShareItsLink) {
  EXPECT_DOUBLE_EQ(predicted_seconds(kModel, "recursive_doubling", nodes_of(2, 2), 8),
                   (1 + 8 + 4) + (100 + 2 * 80 + 4));
}

TEST(CostModel, RanksAboveThePowerOfTwoAddTwoMessages) {
  EXPECT_DOUBLE_EQ(predicted_seconds(kModel, "recursive_doubling", Topology::one_node(3), 8),
                   (1 + 8 + 4) + (1 + 8) + (1 + 8 + 4));
}

TEST(CostModel, TreeGoesUpAndDown) {
  EXPECT_DOUBLE_EQ(predicted_seconds(kModel, "tree", Topology::one_node(4), 8), 2 * (2 * (1 + 8) + 4));
}

// One piece: reduce-scatter and all-gather of halves in the node, halves over the wire, which both share.
TEST(CostModel, HierarchicalSendsEachByteOncePerNode) {
  EXPECT_DOUBLE_EQ(predicted_seconds(kModel, "hierarchical", nodes_of(2, 2), 8),
                   (2 * (1 + 4) + 2) + (2 * (100 + 40) + 1));
}

TEST(CostModel, OneRankTakesNoTime) {
  EXPECT_EQ(predicted_seconds(kModel, "ring", Topology::one_node(1), 1 << 20), 0);
}

TEST(CostModel, KnowsNothingOfOtherAlgorithms) {
  EXPECT_THAT([] { predicted_seconds(kModel, "mpi", Topology::one_node(2), 8); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("no cost model of the allreduce \"mpi\"")));
}

TEST(FastestAllreduce, ExchangesShortBuffersAndSplitsLongOnes) {
  const Topology eight = Topology::one_node(8);
  EXPECT_EQ(fastest_allreduce({}, eight, 64), "recursive_doubling");
  EXPECT_EQ(fastest_allreduce({}, eight, std::int64_t{64} << 20), "halving_doubling");
  EXPECT_EQ(fastest_allreduce({}, Topology::one_node(7), std::int64_t{64} << 20), "ring");
}

TEST(FastestAllreduce, UsesTheLevelsOfNodesForLongBuffers) {
  EXPECT_EQ(fastest_allreduce({}, nodes_of(4, 8), std::int64_t{64} << 20), "hierarchical");
}

TEST(CostModel, ComesBackFromItsJson) {
  const CostModel read = CostModel::from_json(kModel.to_json());
  EXPECT_DOUBLE_EQ(read.inside.latency_s, 1);
  EXPECT_DOUBLE_EQ(read.inside.seconds_per_byte, 1);
  EXPECT_DOUBLE_EQ(read.between.latency_s, 100);
  EXPECT_DOUBLE_EQ(read.between.seconds_per_byte, 10);
  EXPECT_DOUBLE_EQ(read.seconds_per_reduced_byte, 0.5);
}

TEST(CostModel, NamesWhatATableLacks) {
  EXPECT_THAT([] { CostModel::from_json("{"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("is not JSON")));
  EXPECT_THAT([] { CostModel::from_json(R"({"inside": {"latency_us": 1, "GBps": 1}})"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("\"between\"")));
  EXPECT_THAT([] { CostModel::from_json(R"({"inside": {"latency_us": 1, "GBps": 0}})"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("\"GBps\", above 0")));
}

TEST(ChooseAllreduce, StaysInSharedMemoryForAnySize) {
  const Topology node = Topology::one_node(4);
  for (const std::int64_t bytes : {0, 64, 1 << 26})
    EXPECT_EQ(choose_allreduce({.topology = node, .shares_memory = true, .bytes = bytes}), "shared_memory");
}

TEST(ChooseAllreduce, GoesByTheCostsElsewhere) {
  const Topology node = Topology::one_node(7);
  const AllreduceCase which{.topology = node, .bytes = 1 << 20};
  EXPECT_EQ(choose_allreduce(which), "ring");
  CostModel slow_start;
  slow_start.inside.latency_s = 10;
  EXPECT_EQ(choose_allreduce(which, slow_start), "recursive_doubling");
}

}  // namespace
}  // namespace kolo
