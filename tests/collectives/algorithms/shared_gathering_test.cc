#include <kolo/collectives/algorithms/shared_gathering.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/collectives/transport/node_ranks.h"

namespace kolo {
namespace {

using testing::Each;

std::byte value_of(int rank, int again) { return static_cast<std::byte>(10 * again + rank + 1); }

// lengths: of each rank's block; from_node: of which ranks the memory is node memory.
void expect_gathered(const NodeRanks& ranks, const std::vector<std::size_t>& lengths,
                     const std::vector<bool>& from_node) {
  const auto channels = ranks.channels();
  ranks.run([&](int rank) {
    Allocator& allocator = from_node[rank] ? static_cast<Allocator&>(ranks.memory(rank)) : cpu_allocator();
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<std::span<std::byte>> blocks;
    for (const std::size_t length : lengths) {
      buffers.push_back(std::make_unique<Buffer>(allocator, length));
      blocks.emplace_back(buffers.back()->data(), length);
    }
    const auto operation = shared_memory_allgather(*channels[rank], blocks);
    for (int again = 0; again < 3; ++again) {
      std::fill(blocks[rank].begin(), blocks[rank].end(), value_of(rank, again));
      NodeRanks::finish(*operation);
      for (int peer = 0; peer < ranks.size(); ++peer)
        EXPECT_THAT(blocks[peer], Each(value_of(peer, again))) << "of " << peer << " on " << rank;
    }
  });
}

TEST(SharedMemoryAllgather, ShortBlocks) {
  expect_gathered(NodeRanks(3, true), {1, 0, 1000}, {true, false, true});
}
TEST(SharedMemoryAllgather, LongBlocksOfNodeMemory) {
  expect_gathered(NodeRanks(3, true), {1500000, 10, 70000}, {true, true, true});
}
TEST(SharedMemoryAllgather, LongBlocksOfOrdinaryMemory) {
  expect_gathered(NodeRanks(4, true), {1500000, 0, 70000, 65536}, {false, false, false, false});
}
TEST(SharedMemoryAllgather, LongBlocksOfBoth) {
  expect_gathered(NodeRanks(4, true), {300000, 500000, 70000, 0}, {false, true, true, false});
}
TEST(SharedMemoryAllgather, NothingAtAll) { expect_gathered(NodeRanks(2, true), {0, 0}, {false, true}); }

TEST(SharedMemoryBroadcast, FromEachRoot) {
  const NodeRanks ranks(3, true);
  const auto channels = ranks.channels();
  for (const std::size_t length : {0, 5, 300000})
    for (int root = 0; root < 3; ++root)
      ranks.run([&](int rank) {
        std::vector<std::byte> bytes(length, value_of(rank, 0));
        NodeRanks::finish(*shared_memory_broadcast(*channels[rank], bytes, root));
        EXPECT_THAT(bytes, Each(value_of(root, 0)));
      });
}

TEST(SharedMemoryBarrier, EndsWhenAllHaveCome) {
  const NodeRanks ranks(3, true);
  const auto channels = ranks.channels();
  std::atomic<int> arrived{0};
  ranks.run([&](int rank) {
    const auto barrier = shared_memory_barrier(*channels[rank]);
    for (int round = 1; round <= 100; ++round) {
      ++arrived;
      NodeRanks::finish(*barrier);
      EXPECT_GE(arrived, 3 * round);
    }
  });
}

}  // namespace
}  // namespace kolo
