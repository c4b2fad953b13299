#include <kolo/collectives/transport/shared_memory_point_to_point.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include <kolo/collectives/algorithms/ring.h>
#include "tests/collectives/transport/node_ranks.h"

namespace kolo {
namespace {

using testing::Each;

std::vector<std::byte> pattern(std::size_t bytes, int seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> made(bytes);
  for (auto& byte : made) byte = static_cast<std::byte>(random());
  return made;
}

void wait(PointToPoint& network, PointToPoint::Request request) {
  while (!network.test(request)) std::this_thread::yield();
}

TEST(SharedMemoryPointToPoint, CarriesMessagesOfAnyLengthInOrder) {
  const std::vector<std::size_t> lengths = {0, 1, 63, 100000, 0, 131072, 131073, 1000001, 7};
  const NodeRanks ranks(2, true);
  const auto channels = ranks.channels();
  ranks.run([&](int rank) {
    SharedMemoryPointToPoint network(*channels[rank]);
    std::vector<std::vector<std::byte>> messages;
    std::vector<PointToPoint::Request> requests;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      messages.push_back(pattern(lengths[i], rank == 0 ? static_cast<int>(i) : -1));
      requests.push_back(rank == 0 ? network.send(1, messages.back()) : network.receive(0, messages.back()));
    }
    for (const auto request : requests) wait(network, request);
    for (std::size_t i = 0; i < lengths.size(); ++i)
      EXPECT_EQ(messages[i], pattern(lengths[i], static_cast<int>(i))) << i;
  });
}

// Both send more than the pipe holds before either looks for what came.
TEST(SharedMemoryPointToPoint, BothWaysAtOnce) {
  const NodeRanks ranks(3);
  const auto channels = ranks.channels();
  ranks.run([&](int rank) {
    SharedMemoryPointToPoint network(*channels[rank]);
    const auto own = pattern(300000, rank);
    std::vector<std::vector<std::byte>> got(3, std::vector<std::byte>(300000));
    std::vector<PointToPoint::Request> sends, receives;
    for (int peer = 0; peer < 3; ++peer) sends.push_back(network.send(peer, own));
    for (int peer = 0; peer < 3; ++peer) receives.push_back(network.receive(peer, got[peer]));
    for (const auto request : sends) wait(network, request);
    for (const auto request : receives) wait(network, request);
    for (int peer = 0; peer < 3; ++peer) EXPECT_EQ(got[peer], pattern(300000, peer));
  });
}

TEST(SharedMemoryPointToPoint, CarriesTheRing) {
  const NodeRanks ranks(4, true);
  const auto channels = ranks.channels();
  const Topology topology = Topology::one_node(4);
  ranks.run([&](int rank) {
    SharedMemoryPointToPoint network(*channels[rank]);
    std::vector<float> values(100003, static_cast<float>(rank + 1));
    const auto ring = ring_allreduce({.network = network, .topology = topology, .chunk_bytes = 50000},
                                     TypedBuffer::of(std::span<float>(values)), ReduceOp::sum);
    NodeRanks::finish(*ring);
    EXPECT_THAT(values, Each(10.0f));
  });
}

}  // namespace
}  // namespace kolo
