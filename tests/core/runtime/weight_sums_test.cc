#include <kolo/core/runtime/weight_sums.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace kolo::detail {
namespace {

using testing::Optional;
using testing::StartsWith;

std::optional<std::string> difference(const std::vector<WeightSums>& sums, std::vector<int> ranks = {}) {
  std::vector<std::string> texts;
  for (const WeightSums& of_rank : sums) texts.push_back(text_of(of_rank));
  return weights_that_differ(texts, ranks, 101, 200);
}

TEST(WeightSums, DependOnEachBitAndOnTheSeed) {
  std::vector<float> values(1000, 1.0f);
  const auto sum = [&](std::uint64_t seed) { return sum_of_bits(values.data(), 4000, seed); };
  const std::uint64_t before = sum(0);
  EXPECT_EQ(sum(0), before);
  EXPECT_NE(sum(1), before);
  values.back() = -0.0f;
  const std::uint64_t of_negative_zero = sum(0);
  values.back() = 0.0f;
  EXPECT_NE(sum(0), of_negative_zero);
}

TEST(WeightSums, NameTheVariableAndTheRankThatDiffersFromMost) {
  const WeightSums usual = {{"fc1/w", 7}, {"fc1/b", 8}}, other = {{"fc1/w", 9}, {"fc1/b", 8}};
  EXPECT_THAT(difference({usual, usual, usual, other}),
              Optional(StartsWith("weights differ: \"fc1/w\" on rank 3 since a step in 101..200 (1 of 2 "
                                  "variables); broadcast them")));
  EXPECT_THAT(difference({other, usual, other, usual, usual}),
              Optional(StartsWith("weights differ: \"fc1/w\" on ranks 0, 2 ")));
}

TEST(WeightSums, NameTheHigherOfTwoRanks) {
  const WeightSums a = {{"w", 1}}, b = {{"w", 2}};
  EXPECT_THAT(difference({a, b}), Optional(StartsWith("weights differ: \"w\" on rank 1 ")));
  EXPECT_THAT(difference({a, b}, {5, 2}), Optional(StartsWith("weights differ: \"w\" on rank 5 ")));
}

TEST(WeightSums, ThatAreTheSameHaveNoDifference) {
  const WeightSums sums = {{"w", ~std::uint64_t{0}}, {"\xff is no UTF-8", 2}};
  EXPECT_EQ(difference({sums, sums, sums}), std::nullopt);
}

}  // namespace
}  // namespace kolo::detail
