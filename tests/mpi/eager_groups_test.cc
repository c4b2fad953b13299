// Several tensors under one name: gathered and broadcast together.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <vector>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;

Tensor filled(const Shape& shape, float value) {
  Tensor tensor(DType::f32, shape);
  for (float& element : tensor.span<float>()) element = value;
  return tensor;
}

// Rank r gives r + 1 rows of the first tensor, `rows` of the second and, if it is the last, one of the third.
std::vector<Tensor> group_of_rank(int r, std::int64_t rows) {
  const std::int64_t number = 100 + r;
  Tensor numbers(DType::i64, {r == size() - 1 ? 1 : 0});
  for (auto& element : numbers.span<std::int64_t>()) element = number;
  return {filled({r + 1, 2}, static_cast<float>(r)), filled({rows}, static_cast<float>(-r)), numbers};
}

class GroupedAllgather : public testing::TestWithParam<std::int64_t> {};
// Short ones travel with the ranks' words on their memory, long ones behind them.
INSTANTIATE_TEST_SUITE_P(Rows, GroupedAllgather, testing::Values(0, 3, 50'000));

TEST_P(GroupedAllgather, BringsTheRowsOfEachMemberInRankOrder) {
  for (int step = 0; step < 3; ++step) {
    const auto handle = grouped_allgather_async(group_of_rank(rank(), GetParam()), {.name = "group"});
    const auto all = handle.wait();
    ASSERT_THAT(all, SizeIs(3));
    std::vector<float> first, second;
    std::vector<std::int64_t> counts;
    for (int r = 0; r < size(); ++r) {
      first.insert(first.end(), 2 * (r + 1), static_cast<float>(r));
      second.insert(second.end(), static_cast<std::size_t>(GetParam()), static_cast<float>(-r));
      counts.insert(counts.end(), {r + 1, GetParam(), r == size() - 1 ? 1 : 0});
    }
    EXPECT_EQ(all[0].shape(), Shape({size() * (size() + 1) / 2, 2}));
    EXPECT_THAT(all[0].span<float>(), ElementsAreArray(first));
    EXPECT_THAT(all[1].span<float>(), ElementsAreArray(second));
    EXPECT_THAT(all[2].span<std::int64_t>(), ElementsAre(100 + size() - 1));
    EXPECT_EQ(handle.rows_by_rank(), counts);
  }
}

TEST(GroupedAllgatherOfSome, HasNoRowsOfARankThatHasJoined) {
  if (size() == 1) GTEST_SKIP() << "nobody joins before the other";
  if (rank() > 0) {
    const auto all = grouped_allgather(std::vector<Tensor>{filled({1}, 1), filled({2, 2}, 2)});
    EXPECT_THAT(all[0].span<float>(), AllOf(SizeIs(size() - 1), Each(1)));
    EXPECT_THAT(all[1].span<float>(), AllOf(SizeIs(4 * (size() - 1)), Each(2)));
  }
  join();
}

TEST(GroupedAllgatherOfSome, OfNothingIsNothing) {
  EXPECT_THAT(grouped_allgather(std::vector<Tensor>{}), IsEmpty());
}

TEST(GroupedAllgatherOfSome, NamesTheMemberThatRanksDisagreeOnAndGoesOn) {
  if (size() == 1) GTEST_SKIP();
  const std::vector<Tensor> group = {filled({2}, 1), filled({1, rank() == 1 ? 4 : 3}, 1)};
  EXPECT_THAT([&] { grouped_allgather(group, {.name = "wide"}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Mismatched shapes for wide (member 1) beyond dimension 0: rank 0 has [1,3], "
                            "rank 1 has [1,4]")));
  EXPECT_THAT(grouped_allgather(std::span(group).first(1), {.name = "wide"}), SizeIs(1));
}

TEST(GroupedBroadcast, BringsShortAndLongMembersOfTheRoot) {
  const int root = size() - 1;
  const auto own = static_cast<float>(rank()), roots = static_cast<float>(root);
  std::vector<Tensor> group;
  for (const std::int64_t elements : {1, 3, 0, 100'000, 7, 60'000, 60'000})
    group.push_back(filled({elements}, own + static_cast<float>(group.size())));
  const auto copies = grouped_broadcast(group, root);
  ASSERT_EQ(copies.size(), group.size());
  for (std::size_t t = 0; t < group.size(); ++t) {
    EXPECT_THAT(copies[t].span<float>(), Each(roots + static_cast<float>(t))) << t;
    EXPECT_THAT(group[t].span<float>(), Each(own + static_cast<float>(t))) << t;
  }
  grouped_broadcast_in_place(group, root, {.name = "parameters"});
  for (std::size_t t = 0; t < group.size(); ++t)
    EXPECT_THAT(group[t].span<float>(), Each(roots + static_cast<float>(t))) << t;
}

TEST(GroupedAllreduce, WritesIntoTheTensorsThatAreGivenInPlace) {
  std::vector<Tensor> group = {filled({2, 3}, 1), filled({5}, static_cast<float>(rank()))};
  grouped_allreduce_in_place(group, ReduceOp::sum, {.name = "own memory"});
  EXPECT_THAT(group[0].span<float>(), Each(static_cast<float>(size())));
  EXPECT_THAT(group[1].span<float>(), Each(static_cast<float>(size() * (size() - 1) / 2)));
  EXPECT_EQ(group[0].shape(), (Shape{2, 3}));
}

TEST(GroupedBroadcast, WritesIntoTheSpansThatAreGiven) {
  std::vector<std::int32_t> a(5, rank()), b(1, 10 + rank());
  const std::vector<std::span<std::int32_t>> members = {a, b};
  grouped_broadcast(std::span<const std::span<std::int32_t>>(members), 0);
  EXPECT_THAT(a, Each(0));
  EXPECT_THAT(b, ElementsAre(10));
}

TEST(GroupedBroadcast, RefusesARootOutsideTheSet) {
  const std::vector<Tensor> group = {filled({2}, 1)};
  EXPECT_THAT([&] { grouped_broadcast(group, size()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("is outside the process set")));
}

}  // namespace
}  // namespace kolo
