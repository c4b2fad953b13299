#include <kolo/collectives/algorithms/choose.h>

#include <gtest/gtest.h>

namespace kolo {
namespace {

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
