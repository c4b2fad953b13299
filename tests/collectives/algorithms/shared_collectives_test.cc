#include <kolo/collectives/algorithms/shared_collectives.h>

#include <kolo/collectives/algorithms/read_in_place.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "tests/collectives/transport/node_ranks.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

namespace kolo {
namespace {

template <typename T>
bool all_are(std::span<T> values, T expected) {
  // Not Each(): it writes a sentence for every element, and there are millions.
  return std::all_of(values.begin(), values.end(), [&](const T& value) { return value == expected; });
}

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
        EXPECT_TRUE(all_are(blocks[peer], value_of(peer, again))) << "of " << peer << " on " << rank;
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
        EXPECT_TRUE(all_are(std::span(bytes), value_of(root, 0))) << "on " << rank;
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

// Whose buffers are node memory.
enum class Place { node, ordinary, mixed };

// A rank's buffer. `shift` elements into its block, so that not all begin at cache lines.
template <typename T>
class Values {
 public:
  Values(NodeMemory& memory, bool in_node, std::size_t count, std::size_t shift = 0)
      : block_(in_node ? static_cast<Allocator&>(memory) : cpu_allocator(), (count + shift) * sizeof(T)),
        values_(reinterpret_cast<T*>(block_.data()) + shift, count) {}
  std::span<T> get() const { return values_; }

 private:
  Buffer block_;
  std::span<T> values_;
};

bool in_node(Place place, int rank) {
  return place == Place::node || (place == Place::mixed && rank % 2 == 1);
}

float input(int rank, std::size_t i) {
  // A step of a linear congruence; magnitudes that differ, so that sums depend on the order.
  const auto bits =
      static_cast<std::uint32_t>(i * 2654435761U + static_cast<std::size_t>(rank) * 1000003 + 12345);
  return std::ldexp(static_cast<float>(bits >> 8), static_cast<int>(bits % 30) - 15);
}

std::vector<float> expected_sum(int ranks, std::size_t count) {
  std::vector<float> sums(count);
  for (std::size_t i = 0; i < count; ++i) {
    sums[i] = input(0, i);
    for (int rank = 1; rank < ranks; ++rank) sums[i] += input(rank, i);
  }
  return sums;
}

class Reduction : public testing::TestWithParam<std::tuple<int, Place>> {
 protected:
  const int ranks_ = std::get<0>(GetParam());
  const Place place_ = std::get<1>(GetParam());
};

// Short, odd, longer than a slot, several turns; the same operation again and again.
TEST_P(Reduction, SumsInRankOrderOnEveryRank) {
  const NodeRanks ranks(ranks_, true);
  const auto channels = ranks.channels();
  for (const std::size_t count : {0, 1, 15, 1025, 60000, 300007}) {
    const auto expected = expected_sum(ranks_, count);
    ranks.run([&](int rank) {
      const Values<float> values(ranks.memory(rank), in_node(place_, rank), count, 3);
      const auto operation =
          shared_memory_allreduce(*channels[rank], TypedBuffer::of(values.get()), ReduceOp::sum, ranks_);
      for (int again = 0; again < 3; ++again) {
        for (std::size_t i = 0; i < count; ++i) values.get()[i] = input(rank, i);
        NodeRanks::finish(*operation);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), values.get().begin()))
            << count << " elements, rank " << rank;
      }
    });
  }
}

// All ask for it in the first and the last round, all but the last rank in the one between.
TEST_P(Reduction, LeavesElementsWhereTheyLieIfAllRanksAskToReadThem) {
  const NodeRanks ranks(ranks_, true);
  const auto channels = ranks.channels();
  constexpr std::size_t kCount = 20000;
  const auto sums = expected_sum(ranks_, kCount);
  ranks.run([&](int rank) {
    const Values<float> values(ranks.memory(rank), in_node(place_, rank), kCount);
    const auto operation =
        shared_memory_allreduce(*channels[rank], TypedBuffer::of(values.get()), ReduceOp::sum, ranks_);
    const auto barrier = shared_memory_barrier(*channels[rank]);
    auto& reading = *operation->read_in_place();
    for (const bool all_ask : {true, false, true}) {
      for (std::size_t i = 0; i < kCount; ++i) values.get()[i] = input(rank, i);
      reading.ask_to_read(all_ask || rank < ranks_ - 1);
      NodeRanks::finish(*operation);
      const auto elements = reading.elements_of_ranks();
      if (all_ask && place_ == Place::node) {
        ASSERT_EQ(elements.size(), static_cast<std::size_t>(ranks_));
        for (int peer = 0; peer < ranks_; ++peer)
          for (std::size_t i = 0; i < kCount; ++i)
            ASSERT_EQ(reinterpret_cast<const float*>(elements[static_cast<std::size_t>(peer)])[i],
                      input(peer, i));
      } else {
        EXPECT_TRUE(elements.empty());
        EXPECT_TRUE(std::equal(sums.begin(), sums.end(), values.get().begin())) << "rank " << rank;
      }
      NodeRanks::finish(*barrier);
    }
  });
}

TEST_P(Reduction, ScattersBlocksOfAnySize) {
  const NodeRanks ranks(ranks_);
  const auto channels = ranks.channels();
  for (const std::int64_t scale : {1, 3000, 70000}) {
    std::vector<std::int64_t> counts;
    for (int rank = 0; rank < ranks_; ++rank) counts.push_back(rank % 3 * scale + rank);
    const auto total =
        static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    const auto expected = expected_sum(ranks_, total);
    ranks.run([&](int rank) {
      const Values<float> values(ranks.memory(rank), in_node(place_, rank), total);
      for (std::size_t i = 0; i < total; ++i) values.get()[i] = input(rank, i);
      NodeRanks::finish(*shared_memory_reduce_scatter(*channels[rank], TypedBuffer::of(values.get()), counts,
                                                      ReduceOp::sum, ranks_));
      const auto first = std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t{0});
      for (std::int64_t i = first; i < first + counts[rank]; ++i)
        ASSERT_EQ(values.get()[static_cast<std::size_t>(i)], expected[static_cast<std::size_t>(i)]) << i;
    });
  }
}

// Row 7 of the worked examples: f16 sums one by one would give 2048.
TEST_P(Reduction, HalvesAreRoundedOnce) {
  const NodeRanks ranks(ranks_);
  const auto channels = ranks.channels();
  for (const std::size_t count : {1, 100000})
    ranks.run([&](int rank) {
      const Values<Half> values(ranks.memory(rank), in_node(place_, rank), count);
      std::fill(values.get().begin(), values.get().end(), Half(rank == 0 ? 2048.0f : 1.0f));
      NodeRanks::finish(
          *shared_memory_allreduce(*channels[rank], TypedBuffer::of(values.get()), ReduceOp::sum, ranks_));
      // 2048 + 1 is a tie that goes to 2048; 2048 + 2 and 2048 + 3, a tie that goes to 2052, are more.
      const float sum = ranks_ == 2 ? 2048.0f : ranks_ == 3 ? 2050.0f : 2052.0f;
      EXPECT_TRUE(all_are(values.get(), Half(sum)));
    });
}

// 1, 3, 5, …: the sum of n is n², the average n, the product 3, 15 or 105.
template <typename T>
void expect_every_operator(NodeChannel& channel, Allocator& allocator) {
  const int n = channel.size();
  const std::vector<std::pair<ReduceOp, int>> expected = {{ReduceOp::sum, n * n},
                                                          {ReduceOp::min, 1},
                                                          {ReduceOp::max, 2 * n - 1},
                                                          {ReduceOp::product, n == 2   ? 3
                                                                              : n == 3 ? 15
                                                                                       : 105},
                                                          {ReduceOp::average, n}};
  for (const std::size_t count : {3, 20000})
    for (const auto& [op, result] : expected) {
      if (op == ReduceOp::average && !is_floating(dtype_of<T>())) continue;
      const Buffer memory(allocator, count * sizeof(T));
      const std::span<T> values(reinterpret_cast<T*>(memory.data()), count);
      std::fill(values.begin(), values.end(), static_cast<T>(static_cast<float>(2 * channel.rank() + 1)));
      NodeRanks::finish(*shared_memory_allreduce(channel, TypedBuffer::of(values), op, n));
      EXPECT_TRUE(all_are(values, static_cast<T>(static_cast<float>(result)))) << name(op);
    }
}

TEST_P(Reduction, EveryOperatorAndType) {
  const NodeRanks ranks(ranks_);
  const auto channels = ranks.channels();
  ranks.run([&](int rank) {
    NodeChannel& channel = *channels[rank];
    Allocator& allocator =
        in_node(place_, rank) ? static_cast<Allocator&>(ranks.memory(rank)) : cpu_allocator();
    expect_every_operator<float>(channel, allocator);
    expect_every_operator<double>(channel, allocator);
    expect_every_operator<Half>(channel, allocator);
    expect_every_operator<BFloat16>(channel, allocator);
    expect_every_operator<std::int8_t>(channel, allocator);
    expect_every_operator<std::uint8_t>(channel, allocator);
    expect_every_operator<std::int32_t>(channel, allocator);
    expect_every_operator<std::int64_t>(channel, allocator);
  });
}

INSTANTIATE_TEST_SUITE_P(SharedMemory, Reduction,
                         testing::Combine(testing::Values(2, 3, 4),
                                          testing::Values(Place::node, Place::ordinary, Place::mixed)));

// Channels that come and go while others are still in their last round.
TEST(NodeChannels, ComeAndGoWhileOthersFinish) {
  NodeRanks ranks(3);
  std::vector<std::vector<std::unique_ptr<NodeChannel>>> made;
  for (int i = 0; i < 20; ++i) made.push_back(ranks.channels());
  ranks.run([&](int rank) {
    for (auto& channels : made) {
      std::vector<float> values(5000, static_cast<float>(rank));
      NodeRanks::finish(*shared_memory_allreduce(*channels[rank], TypedBuffer::of(std::span<float>(values)),
                                                 ReduceOp::sum, 3));
      channels[rank].reset();
      EXPECT_THAT(values, testing::Each(3.0f));
    }
  });
}

}  // namespace
}  // namespace kolo
