// Eager collectives that the ranks do not call alike, or that one of them refuses: the collectives' worked
// examples.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include <kolo/core/base/error.h>
#include <tests/mpi/eager_calls.h>

namespace kolo {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Row 12.
TEST(Eager, RefusesToGatherRowsOfDifferentWidth) {
  if (size() == 1) GTEST_SKIP();
  const Tensor own = Tensor::zeros(DType::f32, {2, rank() == 0 ? 3 : 4});
  EXPECT_THAT([&] { allgather(own, {.name = "row12"}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Mismatched shapes for row12 beyond dimension 0: "
                                                            "rank 0 has [2,3], rank 1 has [2,4]")));
}

TEST(Eager, RefusesToGatherScalars) {
  EXPECT_THAT([&] { allgather(Tensor::scalar(1.0f), {.name = "scalar"}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("needs at least one dimension")));
}

// Row 16.
TEST(Eager, RefusesARootOutsideTheSet) {
  std::vector<float> value = {0};
  const auto text = fmt::format("root rank {0} is outside the process set of {0} ranks", size());
  EXPECT_THAT([&] { broadcast(std::span(value), size(), {.name = "row16"}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr(text)));
  EXPECT_NO_THROW(broadcast(std::span(value), 0, {.name = "row16"}));
}

// Row 17.
TEST(Eager, NamesBothRootsThatRanksGive) {
  if (size() == 1) GTEST_SKIP();
  std::vector<float> value = {0};
  EXPECT_THAT([&] { broadcast(std::span(value), rank() == 0 ? 0 : 1, {.name = "row17"}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Mismatched root ranks for row17: rank 0 says 0, rank 1 says 1")));
}

// Row 19.
TEST(Eager, RefusesRowsThatDoNotDivide) {
  NEEDS_RANKS(2);
  EXPECT_THAT(
      [&] {
        alltoall(Tensor::zeros(DType::f32, {3, 2}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("3 rows do not divide by 2")));
}

TEST(Eager, TellsTheOthersThatOneRankGaveWrongSplits) {
  if (size() == 1) GTEST_SKIP();
  const std::vector<std::int64_t> splits(size(), rank() == 1 ? 2 : 1);
  const Tensor rows = Tensor::zeros(DType::f32, {size()});
  const auto call = [&] { alltoall(rows, splits, {.name = "splits"}); };
  const auto own = fmt::format("splits must have {0} non-negative entries that sum to {0}", size());
  if (rank() == 1) {
    EXPECT_THAT(call, ThrowsMessage<InvalidArgumentError>(HasSubstr(own)));
  } else {
    EXPECT_THAT(call, ThrowsMessage<FailedPreconditionError>(HasSubstr("rank 1 refused splits: " + own)));
  }
  EXPECT_EQ(alltoall(rows, {}, {.name = "splits"}).tensor.elements(), size());
}

TEST(Eager, RefusesSplitsThatAddUpOnlyIn64BitsAndGoesOn) {
  if (size() < 3) GTEST_SKIP() << "the sum of two does not come back to a number of rows";
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> splits(size(), 1);
  if (rank() == 2) splits = {kMost, kMost, size() + 2};
  splits.resize(size(), 0);
  const Tensor rows = Tensor::zeros(DType::f32, {size()});
  const auto call = [&] { alltoall(rows, splits, {.name = "wraps"}); };
  const auto own = fmt::format("splits must have {0} non-negative entries that sum to {0}", size());
  if (rank() == 2) {
    EXPECT_THAT(call, ThrowsMessage<InvalidArgumentError>(HasSubstr(own)));
  } else {
    EXPECT_THAT(call, ThrowsMessage<FailedPreconditionError>(HasSubstr("rank 2 refused wraps: " + own)));
  }
  EXPECT_EQ(alltoall(rows, {}, {.name = "wraps"}).tensor.elements(), size());
}

// Row 20.
TEST(Eager, NamesBothShapesAndSucceedsNextTime) {
  if (size() == 1) GTEST_SKIP();
  std::vector<float> values(rank() == 1 ? 18 : 17, 1);
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT([&] { allreduce(std::span(values), ReduceOp::sum, {.name = "row20"}); },
                ThrowsMessage<InvalidArgumentError>(
                    HasSubstr("Mismatched shapes for row20: rank 0 has [17], rank 1 has [18]")));
    EXPECT_THAT(reduced<float>({1}, ReduceOp::sum, {.name = "row20"}), ElementsAre(size()));
  }
}

// Row 21.
TEST(Eager, NamesBothTypes) {
  if (size() == 1) GTEST_SKIP();
  const Tensor own = Tensor::zeros(rank() == 0 ? DType::f32 : DType::f64, {2});
  EXPECT_THAT([&] { allreduce(own, ReduceOp::sum, {.name = "row21"}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Mismatched data types for row21: rank 0 has float32, rank 1 has float64")));
}

// Row 22.
TEST(Eager, NamesBothOperations) {
  if (size() == 1) GTEST_SKIP();
  const Tensor own = Tensor::zeros(DType::f32, {2});
  EXPECT_THAT(
      [&] {
        if (rank() == 0) allreduce(own, ReduceOp::sum, {.name = "row22"});
        else allgather(own, {.name = "row22"});
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("Mismatched operations for row22: rank 0 allreduce, rank 1 allgather")));
}

// Row 23.
TEST(Eager, RefusesANameThatIsPending) {
  if (size() == 1) GTEST_SKIP();
  std::vector<float> first = {1}, second = {1};
  if (rank() == 0) {
    const auto handle = allreduce_async(std::span(first), ReduceOp::sum, {.name = "row23"});
    EXPECT_THAT(
        [&] { allreduce(std::span(second), ReduceOp::sum, {.name = "row23"}); },
        ThrowsMessage<InvalidArgumentError>(HasSubstr("allreduce row23 is already pending on rank 0")));
    barrier({.name = "row23.goes_on"});
    handle.wait();
  } else {
    barrier({.name = "row23.goes_on"});
    allreduce(std::span(first), ReduceOp::sum, {.name = "row23"});
  }
  EXPECT_THAT(first, ElementsAre(size()));
}

// Row 34.
TEST(Eager, FailsAWholeGroupForOneMember) {
  if (size() == 1) GTEST_SKIP();
  std::vector<float> a = {1, 2}, b(rank() == 1 ? 4 : 3, 1);
  const std::vector<std::span<float>> group = {a, b};
  EXPECT_THAT([&] { grouped_allreduce(std::span(group), ReduceOp::sum, {.name = "row34"}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Mismatched shapes for row34 (member 1): rank 0 has [3], rank 1 has [4]")));
  EXPECT_THAT(a, ElementsAre(1, 2));
  b.resize(3);
  const std::vector<std::span<float>> equal = {a, b};
  grouped_allreduce(std::span(equal), ReduceOp::sum, {.name = "row34"});
  EXPECT_THAT(a, ElementsAre(size(), 2 * size()));
  EXPECT_THAT(b, Each(size()));
}

}  // namespace
}  // namespace kolo
