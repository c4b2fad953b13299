// A thousand ranks agree on the operations of a step, and reduce a gradient.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include <kolo/collectives/algorithms/cost_model.h>

#include "tests/collectives/algorithms/simulated_network.h"
#include "tests/collectives/engine/simulated_negotiation.h"

namespace kolo::detail {
namespace {

constexpr int kRanks = 1024, kDoublings = 10;

TEST(Steps, TakeOneNoteUpAndOneToEachChild) {
  SimulatedNegotiation ranks(kRanks, 16);
  ranks.submit_everywhere(allreduce_request("g"));
  ranks.settle();
  std::vector<std::int64_t> messages, bytes;
  for (int rank = 0; rank < kRanks; ++rank) {
    messages.push_back(ranks.rank(rank).counts().messages);
    bytes.push_back(ranks.rank(rank).counts().bytes);
  }
  for (int step = 0; step < 3; ++step) {
    ranks.submit_everywhere(allreduce_request("g"));
    ranks.settle();
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(ranks.decisions(rank).size(), 4U);
    EXPECT_LE(ranks.rank(rank).counts().messages - messages[static_cast<std::size_t>(rank)], 3 * 5);
    EXPECT_LE(ranks.rank(rank).counts().bytes - bytes[static_cast<std::size_t>(rank)], 3 * 5 * 64);
    EXPECT_LE(ranks.partners(rank), 5U) << "a parent and four children";
  }
}

TEST(Steps, ReduceASmallGradientByMessagesThatGrowWithTheLogarithm) {
  constexpr std::int64_t kElements = 256;
  const auto bytes = static_cast<std::int64_t>(kElements * sizeof(float));
  std::vector<int> hosts(kRanks);  // one rank on each
  std::iota(hosts.begin(), hosts.end(), 0);
  const Topology topology(hosts);
  SimulatedNetwork network(topology, 7);
  const std::string algorithm = choose_allreduce({.topology = topology, .bytes = bytes});
  std::vector<std::vector<float>> gradients(kRanks, std::vector<float>(kElements, 1));
  std::vector<std::shared_ptr<Collective>> operations;
  for (int rank = 0; rank < kRanks; ++rank)
    operations.push_back(
        make_allreduce(algorithm, network.context(rank, 1 << 18),
                       {reinterpret_cast<std::byte*>(gradients[static_cast<std::size_t>(rank)].data()),
                        kElements, DType::f32},
                       ReduceOp::sum));
  network.run(operations);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_THAT(gradients[static_cast<std::size_t>(rank)], testing::Each(kRanks));
    const auto& sent = network.sent(rank);
    EXPECT_LE(sent.messages, 2 * kDoublings) << algorithm;
    EXPECT_LE(sent.bytes, kDoublings * bytes) << algorithm;
    EXPECT_LE(sent.partners.size(), 2 * kDoublings) << algorithm;
  }
}

TEST(Steps, TellAllThatARankHasGoneByOneNoteToEachChild) {
  SimulatedNegotiation ranks(kRanks, 16);
  ranks.rank(0).gone(700);
  ranks.settle();
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_THAT(ranks.story(rank), testing::ElementsAre("gone 700"));
    EXPECT_LE(ranks.rank(rank).counts().messages, 4);
  }
}

}  // namespace
}  // namespace kolo::detail
