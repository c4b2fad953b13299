// What every allreduce over point-to-point messages does alike, with 1 … 257 ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include <kolo/core/base/error.h>
#include <tests/collectives/algorithms/simulated_allreduce.h>

namespace kolo {
namespace {

using testing::Each;
using testing::ElementsAre;

class Allreduce : public testing::TestWithParam<const char*> {
 protected:
  SimulatedAllreduce simulated(ReduceOp op = ReduceOp::sum) const {
    return {.algorithm = GetParam(), .op = op};
  }
};

// Small whole numbers, so that their sum in any order is exact.
TEST_P(Allreduce, SumEqualsThePlainSumOnEveryRank) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 100, 257}) {
    for (const int elements : {0, 1, 3, ranks - 1, 2 * ranks + 1, 1003}) {
      Arrays<float> arrays(ranks, std::vector<float>(elements));
      std::vector<float> sum(elements);
      for (int rank = 0; rank < ranks; ++rank)
        for (int i = 0; i < elements; ++i)
          sum[i] += arrays[rank][i] = static_cast<float>((rank * 31 + i * 7) % 17 - 8);
      simulated().run(arrays);
      for (int rank = 0; rank < ranks; ++rank)
        ASSERT_EQ(arrays[rank], sum) << "rank " << rank << " of " << ranks;
    }
  }
}

TEST_P(Allreduce, GivesTheSameBitsToAllRanksAndInEveryRun) {
  for (const int ranks : {2, 3, 6, 13, 32}) {
    Arrays<float> arrays(ranks, std::vector<float>(517));
    std::mt19937 random(3);
    for (auto& array : arrays)
      for (auto& value : array)
        value = std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 40) - 20);
    Arrays<float> again = arrays;
    simulated().run(arrays);
    simulated().run(again);
    for (const auto& array : arrays) ASSERT_EQ(array, arrays[0]) << ranks << " ranks";
    ASSERT_EQ(again, arrays) << ranks << " ranks";
  }
}

// 41 × (1/41) is not 1 in f32.
TEST_P(Allreduce, AverageOfEqualValuesIsTheValue) {
  for (const int ranks : {1, 2, 41, 47, 55}) {
    Arrays<float> arrays(ranks, std::vector<float>(83, 1.0f));
    simulated(ReduceOp::average).run(arrays);
    for (const auto& array : arrays) ASSERT_THAT(array, Each(1.0f)) << ranks << " ranks";
  }
}

TEST_P(Allreduce, AverageDividesByWhatTheContextSays) {
  Arrays<double> arrays(5, std::vector<double>(7, 6.0));
  SimulatedAllreduce allreduce = simulated(ReduceOp::average);
  allreduce.average_over = 3;
  allreduce.run(arrays);
  for (const auto& array : arrays) EXPECT_THAT(array, Each(10.0));
}

TEST_P(Allreduce, MaximumAndMinimumOfNanAndNumbersAreNan) {
  for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    Arrays<float> arrays = {{-1, nan, 3}, {0, 1, 2}, {5, 1, 1}};
    simulated(op).run(arrays);
    const bool is_max = op == ReduceOp::max;
    for (const auto& array : arrays)
      EXPECT_THAT(array, ElementsAre(is_max ? 5 : -1, testing::IsNan(), is_max ? 3 : 1));
  }
}

template <typename T>
void check_operators(const SimulatedAllreduce& sum, T a, T b, T c, T expected_sum, T expected_product) {
  SimulatedAllreduce allreduce = sum;
  const auto check = [&](ReduceOp op, T expected) {
    Arrays<T> arrays = {std::vector<T>(9, a), std::vector<T>(9, b), std::vector<T>(9, c)};
    allreduce.op = op;
    allreduce.run(arrays);
    for (const auto& array : arrays)
      EXPECT_THAT(array, Each(expected)) << numpy_name(dtype_of<T>()) << " " << kolo::name(op);
  };
  check(ReduceOp::sum, expected_sum);
  check(ReduceOp::product, expected_product);
  check(ReduceOp::min, a);
  check(ReduceOp::max, c);
}

TEST_P(Allreduce, EveryOperatorWorksOnEveryType) {
  check_operators<float>(simulated(), -2, 3, 5, 6, -30);
  check_operators<double>(simulated(), -2, 3, 5, 6, -30);
  check_operators<Half>(simulated(), Half(-2.f), Half(3.f), Half(5.f), Half(6.f), Half(-30.f));
  check_operators<BFloat16>(simulated(), BFloat16(-2.f), BFloat16(3.f), BFloat16(5.f), BFloat16(6.f),
                            BFloat16(-30.f));
  check_operators<std::int32_t>(simulated(), -2, 3, 5, 6, -30);
  check_operators<std::int64_t>(simulated(), -2, 3, 5, 6, -30);
  check_operators<std::int8_t>(simulated(), 20, 100, 101, -35, 16);  // 221 and 202000, modulo 256
  check_operators<std::uint8_t>(simulated(), 20, 100, 101, 221, 16);
}

TEST_P(Allreduce, SumOfBooleansIsOrAndTheirProductAnd) {
  SimulatedNetwork network(2, 7);
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product}) {
    Arrays<std::uint8_t> arrays = {{1, 0, 0, 1}, {0, 0, 1, 1}};
    std::vector<std::shared_ptr<Collective>> operations;
    for (int rank = 0; rank < 2; ++rank)
      operations.push_back(
          make_allreduce(GetParam(), network.context(rank, 64),
                         {reinterpret_cast<std::byte*>(arrays[rank].data()), 4, DType::boolean}, op));
    network.run(operations);
    for (const auto& array : arrays) {
      if (op == ReduceOp::sum) EXPECT_THAT(array, ElementsAre(1, 0, 1, 1));
      else EXPECT_THAT(array, ElementsAre(0, 0, 0, 1));
    }
  }
}

// Any two of them add up to more than f16 holds; their multiples need few digits.
TEST_P(Allreduce, AverageOfLargeHalvesIsInTheirRange) {
  for (const int ranks : {2, 3, 4, 5, 7, 8, 16, 31, 100}) {
    Arrays<Half> arrays(ranks, std::vector<Half>(83, Half(49152.0f)));
    simulated(ReduceOp::average).run(arrays);
    for (const auto& array : arrays) ASSERT_THAT(array, Each(Half(49152.0f))) << ranks << " ranks";
  }
}

// Whole numbers whose sums f16 holds: nothing is rounded but the quotient.
TEST_P(Allreduce, AverageOfHalvesHasTheDigitsOfAnExactSum) {
  for (const int ranks : {2, 3, 4, 5, 6, 7, 8, 16, 31}) {
    Arrays<Half> arrays(ranks, std::vector<Half>(97));
    std::vector<Half> average;
    for (int i = 0; i < 97; ++i) {
      int sum = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const int value = (rank * 31 + i * 7) % 17 - 8;
        arrays[rank][i] = Half(static_cast<float>(value));
        sum += value;
      }
      average.emplace_back(static_cast<float>(sum) / static_cast<float>(ranks));
    }
    simulated(ReduceOp::average).run(arrays);
    for (const auto& array : arrays) ASSERT_EQ(array, average) << ranks << " ranks";
  }
}

// An average of numbers that were divided first would be 0.
TEST_P(Allreduce, AverageOfTheSmallestHalvesIsLeft) {
  const float smallest = std::ldexp(1.0f, -24);
  for (const int ranks : {2, 3, 4, 5, 8, 16, 64}) {
    Arrays<Half> arrays(ranks, std::vector<Half>(5, Half(smallest)));
    simulated(ReduceOp::average).run(arrays);
    for (const auto& array : arrays)
      for (const Half value : array) {
        ASSERT_GE(static_cast<float>(value), smallest) << ranks << " ranks";
        ASSERT_LE(static_cast<float>(value), 2 * smallest) << ranks << " ranks";
      }
  }
}

// With 2048 every further rounding to f16 would lose the 1.
TEST_P(Allreduce, HalvesAreRoundedOnceIfTheWireIsF32) {
  Arrays<Half> arrays(5, std::vector<Half>(9, Half(1.0f)));
  arrays[0].assign(9, Half(2048.0f));
  SimulatedAllreduce allreduce = simulated();
  allreduce.f32_wire = true;
  allreduce.run(arrays);
  for (const auto& array : arrays) EXPECT_THAT(array, Each(Half(2052.0f)));
}

TEST_P(Allreduce, RunsAgainOnTheSameBuffers) {
  Arrays<float> arrays(3, std::vector<float>(100, 1.0f));
  SimulatedAllreduce allreduce = simulated();
  allreduce.turns = 3;
  allreduce.run(arrays);
  for (const auto& array : arrays) EXPECT_THAT(array, Each(27.0f));
}

TEST_P(Allreduce, SendsNothingForZeroElementsOrOneRank) {
  Arrays<float> empty(6);
  EXPECT_EQ(simulated().run(empty), 0);
  Arrays<float> alone(1, {3.0f});
  EXPECT_EQ(simulated(ReduceOp::average).run(alone), 0);
  EXPECT_EQ(alone[0][0], 3.0f);
}

TEST_P(Allreduce, RefusesTheAverageOfIntegers) {
  Arrays<std::int32_t> arrays(3, std::vector<std::int32_t>(4));
  EXPECT_THAT([&] { simulated(ReduceOp::average).run(arrays); },
              testing::ThrowsMessage<InvalidArgumentError>(testing::HasSubstr(
                  "average is not defined for int32; use sum, or cast to a floating type")));
}

INSTANTIATE_TEST_SUITE_P(Simulated, Allreduce,
                         testing::Values("halving_doubling", "hierarchical", "recursive_doubling", "ring",
                                         "tree"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace kolo
