#include <kolo/collectives/algorithms/hierarchical.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include <tests/collectives/algorithms/simulated_allreduce.h>

namespace kolo {
namespace {

// The ranks' nodes, each by its lowest rank.
struct Job {
  const char* name;
  std::vector<int> leaders;
};

class HierarchicalJobs : public testing::TestWithParam<Job> {};

TEST_P(HierarchicalJobs, SumEqualsThePlainSumOnEveryRank) {
  const Topology topology(GetParam().leaders);
  for (const int elements : {0, 1, 5, 1001, 300007}) {
    Arrays<float> arrays(topology.ranks(), std::vector<float>(elements));
    std::vector<float> sum(elements);
    for (int rank = 0; rank < topology.ranks(); ++rank)
      for (int i = 0; i < elements; ++i)
        sum[i] += arrays[rank][i] = static_cast<float>((rank * 31 + i * 7) % 17 - 8);
    SimulatedAllreduce{.algorithm = "hierarchical", .chunk_bytes = 4096}.run(arrays, topology);
    for (const auto& array : arrays) ASSERT_EQ(array, sum) << elements << " elements";
  }
}

TEST_P(HierarchicalJobs, AverageOfEqualHalvesIsTheHalfInEveryTurn) {
  const Topology topology(GetParam().leaders);
  Arrays<Half> arrays(topology.ranks(), std::vector<Half>(20001, Half(3.0f)));
  SimulatedAllreduce{.algorithm = "hierarchical", .op = ReduceOp::average, .chunk_bytes = 4096, .turns = 2}
      .run(arrays, topology);
  for (const auto& array : arrays) EXPECT_THAT(array, testing::Each(Half(3.0f)));
}

TEST_P(HierarchicalJobs, AverageOfLargeHalvesIsInTheirRange) {
  const Topology topology(GetParam().leaders);
  Arrays<Half> arrays(topology.ranks(), std::vector<Half>(20001, Half(49152.0f)));
  SimulatedAllreduce{.algorithm = "hierarchical", .op = ReduceOp::average, .chunk_bytes = 4096, .turns = 2}
      .run(arrays, topology);
  for (const auto& array : arrays) EXPECT_THAT(array, testing::Each(Half(49152.0f)));
}

INSTANTIATE_TEST_SUITE_P(Simulated, HierarchicalJobs,
                         testing::Values(Job{"TwoNodesOfTwo", {0, 0, 2, 2}},
                                         Job{"TwoNodesOfTwoInTurns", {0, 1, 0, 1}},
                                         Job{"OneNodeOfThree", {0, 0, 0}},
                                         Job{"FiveNodesOfOne", {0, 1, 2, 3, 4}},
                                         Job{"NodesOfOneAndThree", {0, 1, 1, 1}},
                                         Job{"NodesOfTwoThreeAndFour", {0, 0, 2, 2, 2, 5, 5, 5, 5}},
                                         Job{"ThreeNodesOfFour", {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8}}),
                         [](const auto& info) { return info.param.name; });

/// Stands for collectives without messages: takes note of its calls, and does nothing.
class SilentCollectives final : public LocalCollectives {
 public:
  std::shared_ptr<Collective> reduce_scatter(const TypedBuffer& buffer, std::span<const std::int64_t> counts,
                                             ReduceOp op, double /*divisor*/) override {
    scattered_elements += buffer.elements;
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), buffer.elements);
    EXPECT_EQ(op, ReduceOp::sum);
    return std::make_shared<Nothing>();
  }
  std::shared_ptr<Collective> allgather(std::span<const std::span<std::byte>> blocks) override {
    for (const auto& block : blocks) gathered_bytes += static_cast<std::int64_t>(block.size());
    return std::make_shared<Nothing>();
  }
  std::int64_t scattered_elements = 0, gathered_bytes = 0;

 private:
  class Nothing final : public Collective {
    void start() override {}
    Progress progress() override { return Progress::finished; }
  };
};

TEST(Hierarchical, LeavesTheNodesToTheCollectivesThatItIsGiven) {
  const Topology topology(std::vector<int>{0, 0, 0, 3, 3, 3});
  SimulatedNetwork network(topology, 7);
  Arrays<float> arrays(6, std::vector<float>(100000, 1.0f));
  std::vector<SilentCollectives> local(6);
  std::vector<std::shared_ptr<Collective>> operations;
  for (int rank = 0; rank < 6; ++rank) {
    AlgorithmContext context = network.context(rank, 4096);
    context.local = &local[rank];
    operations.push_back(
        hierarchical_allreduce(context, TypedBuffer::of(std::span(arrays[rank])), ReduceOp::average));
  }
  network.run(operations);
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(local[rank].scattered_elements, 100000);
    EXPECT_EQ(local[rank].gathered_bytes, 400000);
    // Its third has been reduced over the two nodes, as the sum of six.
    EXPECT_EQ(std::count(arrays[rank].begin(), arrays[rank].end(), 2.0f / 6), rank % 3 == 0 ? 33334 : 33333);
  }
}

// Two ranks on each of two nodes: a shard each, exchanged and handed back.
TEST(Hierarchical, SendsEachShardOnceInEachDirectionBetweenTwoNodes) {
  const Topology topology(std::vector<int>{0, 0, 2, 2});
  SimulatedNetwork network(topology, 7);
  Arrays<float> arrays(4, std::vector<float>(100, 1.0f));
  SilentCollectives local;
  std::vector<std::shared_ptr<Collective>> operations;
  for (int rank = 0; rank < 4; ++rank) {
    AlgorithmContext context = network.context(rank, 4096);
    context.local = &local;
    operations.push_back(
        hierarchical_allreduce(context, TypedBuffer::of(std::span(arrays[rank])), ReduceOp::sum));
  }
  network.run(operations);
  EXPECT_EQ(network.messages(), 4 * 2);
}

}  // namespace
}  // namespace kolo
