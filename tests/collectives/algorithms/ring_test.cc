#include <kolo/collectives/algorithms/ring.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include <kolo/core/base/error.h>
#include <tests/collectives/algorithms/simulated_network.h>

namespace kolo {
namespace {

template <typename T>
using Arrays = std::vector<std::vector<T>>;  // one for each rank

template <typename T>
void allreduce(Arrays<T>& arrays, ReduceOp op, std::int64_t chunk_bytes, std::int64_t* messages = nullptr) {
  SimulatedNetwork network(static_cast<int>(arrays.size()), 7);
  std::vector<std::shared_ptr<Collective>> operations;
  for (int rank = 0; rank < network.size(); ++rank)
    operations.push_back(
        ring_allreduce(network.context(rank, chunk_bytes), TypedBuffer::of(std::span<T>(arrays[rank])), op));
  network.run(operations);
  if (messages != nullptr) *messages = network.messages();
}

struct Size {
  int ranks;
  int elements;
  std::int64_t chunk_bytes;
};

class RingSizes : public testing::TestWithParam<Size> {};

// Small whole numbers, so that their sum in any order is exact.
TEST_P(RingSizes, SumEqualsThePlainSumOnEveryRank) {
  const auto [ranks, elements, chunk_bytes] = GetParam();
  Arrays<float> arrays(ranks, std::vector<float>(elements));
  std::vector<float> sum(elements);
  for (int rank = 0; rank < ranks; ++rank)
    for (int i = 0; i < elements; ++i)
      sum[i] += arrays[rank][i] = static_cast<float>((rank * 31 + i * 7) % 17 - 8);
  allreduce(arrays, ReduceOp::sum, chunk_bytes);
  for (int rank = 0; rank < ranks; ++rank) ASSERT_EQ(arrays[rank], sum) << "rank " << rank;
}

INSTANTIATE_TEST_SUITE_P(Simulated, RingSizes,
                         testing::Values(Size{1, 5, 64}, Size{2, 0, 64}, Size{2, 1, 64}, Size{2, 1000, 64},
                                         Size{3, 1, 64}, Size{3, 2, 64}, Size{3, 7, 4096}, Size{4, 1001, 64},
                                         Size{5, 997, 128}, Size{7, 64, 64}, Size{8, 4096, 256},
                                         Size{16, 15, 64}, Size{31, 10007, 512}, Size{64, 64, 64},
                                         Size{100, 99, 64}, Size{128, 5000, 64}, Size{257, 1, 64},
                                         Size{257, 256, 64}, Size{257, 20011, 128}),
                         [](const auto& info) {
                           return "Ranks" + std::to_string(info.param.ranks) + "Elements" +
                                  std::to_string(info.param.elements) + "Chunk" +
                                  std::to_string(info.param.chunk_bytes);
                         });

TEST(Ring, AveragesSevenElementsOverThreeRanks) {
  Arrays<double> arrays(3, std::vector<double>(7));
  for (int rank = 0; rank < 3; ++rank) std::iota(arrays[rank].begin(), arrays[rank].end(), rank * 10.0);
  allreduce(arrays, ReduceOp::average, 64);
  for (const auto& array : arrays) EXPECT_THAT(array, testing::ElementsAre(10, 11, 12, 13, 14, 15, 16));
}

// 41 × (1/41) is not 1 in f32.
TEST(Ring, AverageOfEqualValuesIsTheValue) {
  Arrays<float> arrays(41, std::vector<float>(83, 1.0f));
  allreduce(arrays, ReduceOp::average, 64);
  for (const auto& array : arrays) EXPECT_THAT(array, testing::Each(1.0f));
}

TEST(Ring, GivesTheSameBitsToAllRanksWhereTheSumRounds) {
  Arrays<float> arrays(13, std::vector<float>(1003));
  std::mt19937 random(3);
  for (auto& array : arrays)
    for (auto& value : array)
      value = std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 40) - 20);
  allreduce(arrays, ReduceOp::sum, 128);
  for (const auto& array : arrays)
    ASSERT_EQ(std::memcmp(array.data(), arrays[0].data(), array.size() * sizeof(float)), 0);
}

TEST(Ring, MaximumOfNanAndNumbersIsNan) {
  Arrays<float> arrays = {{-1, std::numeric_limits<float>::quiet_NaN(), 3}, {0, 1, 2}, {5, 1, 1}};
  allreduce(arrays, ReduceOp::max, 64);
  for (const auto& array : arrays) EXPECT_THAT(array, testing::ElementsAre(5, testing::IsNan(), 3));
}

TEST(Ring, SumOfEightBitIntegersWraps) {
  Arrays<std::int8_t> arrays = {{127, -128, 5}, {1, -1, 5}};
  allreduce(arrays, ReduceOp::sum, 64);
  for (const auto& array : arrays) EXPECT_THAT(array, testing::ElementsAre(-128, 127, 10));
}

TEST(Ring, AverageOfHalvesDoesNotOverflowInTheLastSum) {
  Arrays<Half> arrays(2, std::vector<Half>(3, Half(60000.0f)));
  allreduce(arrays, ReduceOp::average, 64);
  for (const auto& array : arrays) EXPECT_THAT(array, testing::Each(Half(60000.0f)));
}

TEST(Ring, RunsAgainOnTheSameBuffers) {
  Arrays<float> arrays(3, std::vector<float>(100, 1.0f));
  SimulatedNetwork network(3, 7);
  std::vector<std::shared_ptr<Collective>> operations;
  for (int rank = 0; rank < 3; ++rank)
    operations.push_back(ring_allreduce(network.context(rank, 64),
                                        TypedBuffer::of(std::span<float>(arrays[rank])), ReduceOp::sum));
  for (int turn = 0; turn < 3; ++turn) network.run(operations);
  for (const auto& array : arrays) EXPECT_THAT(array, testing::Each(27.0f));
}

// counts[r] elements of 10 · (element's place) + rank for each rank.
Arrays<float> reduce_scattered(const std::vector<std::int64_t>& counts, ReduceOp op,
                               std::int64_t chunk_bytes) {
  const int ranks = static_cast<int>(counts.size());
  const auto elements = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  Arrays<float> arrays(ranks, std::vector<float>(elements));
  SimulatedNetwork network(ranks, 7);
  std::vector<std::shared_ptr<Collective>> operations;
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::int64_t i = 0; i < elements; ++i) arrays[rank][i] = static_cast<float>(10 * i + rank);
    operations.push_back(ring_reduce_scatter(network.context(rank, chunk_bytes),
                                             TypedBuffer::of(std::span<float>(arrays[rank])), counts, op));
  }
  network.run(operations);
  std::int64_t first = 0;
  for (int rank = 0; rank < ranks; first += counts[rank++])
    arrays[rank] = {arrays[rank].begin() + first, arrays[rank].begin() + first + counts[rank]};
  return arrays;
}

// COLLECTIVES row 13, with the rank added to each element.
TEST(RingReduceScatter, GivesEachRankItsBlockOfTheSum) {
  EXPECT_THAT(reduce_scattered({3, 2, 2}, ReduceOp::sum, 64),
              testing::ElementsAre(testing::ElementsAre(3, 33, 63), testing::ElementsAre(93, 123),
                                   testing::ElementsAre(153, 183)));
}

TEST(RingReduceScatter, TakesBlocksOfAnySize) {
  for (const int ranks : {1, 2, 3, 5, 16, 100}) {
    std::vector<std::int64_t> counts(ranks);
    for (int rank = 0; rank < ranks; ++rank) counts[rank] = rank % 3 == 1 ? 0 : (rank * 37) % 101;
    const auto blocks = reduce_scattered(counts, ReduceOp::average, 64);
    std::int64_t i = 0;
    for (int rank = 0; rank < ranks; ++rank)
      for (const float element : blocks[rank])
        ASSERT_FLOAT_EQ(element, static_cast<float>(10 * i++) + static_cast<float>(ranks - 1) / 2);
  }
}

TEST(RingAllgather, GivesAllRanksBlocksOfAnySize) {
  for (const int ranks : {1, 2, 3, 5, 16, 100}) {
    Arrays<std::uint8_t> expected(ranks);
    for (int rank = 0; rank < ranks; ++rank)
      expected[rank].assign(rank % 3 == 1 ? 0 : (rank * 37) % 301, static_cast<std::uint8_t>(rank + 1));
    SimulatedNetwork network(ranks, 7);
    std::vector<Arrays<std::uint8_t>> blocks(ranks, Arrays<std::uint8_t>(ranks));
    std::vector<std::shared_ptr<Collective>> operations;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::span<std::byte>> spans;
      for (int r = 0; r < ranks; ++r) {
        blocks[rank][r].resize(expected[r].size());
        if (r == rank) blocks[rank][r] = expected[r];
        spans.push_back(std::as_writable_bytes(std::span(blocks[rank][r])));
      }
      operations.push_back(ring_allgather(network.end(rank), spans, 64));
    }
    for (int turn = 0; turn < 2; ++turn) network.run(operations);
    for (int rank = 0; rank < ranks; ++rank) ASSERT_EQ(blocks[rank], expected) << "rank " << rank;
  }
}

TEST(Ring, SendsNothingForZeroElementsOrOneRank) {
  std::int64_t messages = -1;
  Arrays<float> empty(4);
  allreduce(empty, ReduceOp::sum, 64, &messages);
  EXPECT_EQ(messages, 0);
  Arrays<float> alone(1, {3.0f});
  allreduce(alone, ReduceOp::average, 64, &messages);
  EXPECT_EQ(messages, 0);
  EXPECT_EQ(alone[0][0], 3.0f);
}

TEST(Ring, RefusesTheAverageOfIntegers) {
  SimulatedNetwork network(3, 7);
  std::vector<std::int32_t> numbers(4);
  EXPECT_THAT(
      [&] { ring_allreduce(network.context(0, 64), TypedBuffer::of(std::span(numbers)), ReduceOp::average); },
      testing::ThrowsMessage<InvalidArgumentError>(
          testing::HasSubstr("average is not defined for int32; use sum, or cast to a floating type")));
}

}  // namespace
}  // namespace kolo
