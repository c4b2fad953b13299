// Eager collectives under mpirun: the collectives' worked examples, for any number of ranks where they allow.
#include <kolo/collectives/engine/eager.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <thread>

#include <kolo/collectives/engine/observer.h>
#include <kolo/collectives/job/init.h>
#include <kolo/collectives/job/runtime.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::FloatNear;
using testing::HasSubstr;
using testing::ThrowsMessage;

#define NEEDS_RANKS(n) \
  if (size() != (n)) GTEST_SKIP() << "an example for " << (n) << " ranks"

template <typename T>
std::vector<T> reduced(std::vector<T> values, const Reduction& reduction, const EagerOptions& options = {}) {
  allreduce(std::span(values), reduction, options);
  return values;
}

// Row 1: [1,2] + [10,20].
TEST(Eager, SumsElements) {
  const auto r = static_cast<float>(rank()), n = static_cast<float>(size());
  const std::vector<float> own = {1 + 9 * r, 2 + 18 * r};
  const float ranks = n * (n - 1) / 2;
  EXPECT_THAT(reduced(own, ReduceOp::sum), ElementsAre(n + 9 * ranks, 2 * n + 18 * ranks));
}

// Row 2.
TEST(Eager, AveragesRankPlusOne) {
  EXPECT_THAT(reduced<float>({static_cast<float>(rank() + 1)}, ReduceOp::average),
              ElementsAre(static_cast<float>(size() + 1) / 2));
}

// Row 3.
TEST(Eager, RefusesTheAverageOfIntegersAndGoesOn) {
  std::vector<std::int32_t> values = {1};
  EXPECT_THAT([&] { allreduce(std::span(values), ReduceOp::average, {.name = "row3"}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("average is not defined for int32; use sum, or cast to a floating type")));
  EXPECT_THAT(reduced(values, ReduceOp::sum, {.name = "row3"}), ElementsAre(size()));
}

// Row 4.
TEST(Eager, MaximumWithANanIsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(reduced<float>({static_cast<float>(rank()), rank() == 0 ? nan : 1.0f}, ReduceOp::max),
              ElementsAre(static_cast<float>(size() - 1), testing::IsNan()));
}

// Rows 5 and 6.
TEST(Eager, CombinesBooleansByOrAndWrapsBytes) {
  const bool own[] = {rank() == 0, false, rank() == size() - 1};
  bool values[] = {own[0], own[1], own[2]};
  allreduce(std::span(values), ReduceOp::sum);
  EXPECT_THAT(values, ElementsAre(true, false, true));
  EXPECT_THAT(reduced<std::int8_t>({127}, ReduceOp::sum),
              ElementsAre(static_cast<std::int8_t>(static_cast<std::uint8_t>(127 * size()))));
}

// Row 8.
TEST(Eager, ScalesBeforeAndAfter) {
  EXPECT_THAT(reduced<float>({8}, {ReduceOp::sum, 0.5, 0.25}), ElementsAre(static_cast<float>(size())));
}

// No rank would agree with another, nor with itself.
TEST(Eager, RefusesScalesThatAreNoNumbersAndGoesOn) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Reduction& scaled : {Reduction(ReduceOp::sum, nan), Reduction(ReduceOp::sum, 1, nan)}) {
    EXPECT_THAT([&] { reduced<float>({8}, scaled, {.name = "nan"}); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("scale factors must be numbers")));
    EXPECT_THAT([&] { grouped_allreduce(std::vector<Tensor>{}, scaled, {.name = "nan of none"}); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("scale factors must be numbers")));
  }
  EXPECT_THAT(reduced<float>({8}, ReduceOp::sum, {.name = "nan"}),
              ElementsAre(8.0f * static_cast<float>(size())));
}

// Row 9.
TEST(Eager, AveragesWithAPredivideFactor) {
  NEEDS_RANKS(4);
  const float gradients[] = {1, 2, 3, 6};
  EXPECT_THAT(reduced<float>({gradients[rank()]}, predivided_average(2, size())), ElementsAre(3));
}

// Rows 10 and 11.
TEST(Eager, GathersDifferentNumbersOfRows) {
  std::vector<float> own(rank() + 1, static_cast<float>(rank())), expected;
  for (int r = 0; r < size(); ++r) expected.insert(expected.end(), r + 1, static_cast<float>(r));
  for (int step = 0; step < 3; ++step)
    EXPECT_THAT(allgather(std::span(own), {.name = "row10"}), ElementsAreArray(expected));
  own.assign(rank() == 1 ? 2 : 0, 7);
  EXPECT_THAT(allgather(std::span(own), {.name = "row10"}).size(), size() > 1 ? 2 : 0);
}

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

// Row 13.
TEST(Eager, ScattersSevenReducedRows) {
  NEEDS_RANKS(3);
  const std::vector<float> rows = {0, 1, 2, 3, 4, 5, 6};
  const std::vector<float> expected[] = {{0, 3, 6}, {9, 12}, {15, 18}};
  EXPECT_EQ(reduce_scatter(std::span(rows), ReduceOp::sum), expected[rank()]);
}

// Row 14.
TEST(Eager, ScattersFewerRowsThanRanks) {
  NEEDS_RANKS(4);
  const Tensor own = reduce_scatter(Tensor::zeros(DType::f32, {2, 3}), ReduceOp::sum);
  EXPECT_EQ(own.shape(), Shape({rank() < 2 ? 1 : 0, 3}));
}

TEST(Eager, ScattersAGroupOfReducedTensors) {
  const std::vector<Tensor> group = {Tensor::zeros(DType::f32, {size(), 2}),
                                     Tensor::zeros(DType::f64, {2 * size()})};
  const auto own = grouped_reduce_scatter(group, ReduceOp::average);
  EXPECT_EQ(own[0].shape(), Shape({1, 2}));
  EXPECT_EQ(own[1].shape(), Shape({2}));
}

// Row 15.
TEST(Eager, BroadcastsFromTheRoot) {
  std::vector<std::int64_t> value = {rank()};
  broadcast(std::span(value), size() - 1);
  EXPECT_THAT(value, ElementsAre(size() - 1));
  EXPECT_THAT(broadcast(Tensor::of<float>({2}, {1.0f * static_cast<float>(rank()), 5}), 0).span<float>(),
              ElementsAre(0, 5));
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

// Row 18.
TEST(Eager, ExchangesRowsByTheirSplits) {
  NEEDS_RANKS(3);
  std::vector<std::int64_t> rows(6);
  std::iota(rows.begin(), rows.end(), 10 * rank());
  const std::vector<std::int64_t> splits = {1, 2, 3};
  const std::vector<std::int64_t> expected[] = {
      {0, 10, 20}, {1, 2, 11, 12, 21, 22}, {3, 4, 5, 13, 14, 15, 23, 24, 25}};
  const auto result = alltoall(std::span(rows), splits);
  EXPECT_EQ(result.elements, expected[rank()]);
  EXPECT_THAT(result.splits, Each(rank() + 1));
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

// Row 24.
TEST(Eager, SumsAHundredNamesInAnyOrderFromTwoThreads) {
  constexpr int kNames = 100;
  std::vector<std::vector<float>> values(kNames);
  const auto call_half = [&](int thread) {
    std::vector<int> order;
    for (int i = thread; i < kNames; i += 2) order.push_back(i);
    std::shuffle(order.begin(), order.end(), std::mt19937(100 * rank() + thread));
    std::vector<Handle<void>> handles;
    for (const int i : order) {
      values[i].assign(1 + 13 * (i % 50), static_cast<float>(i + rank()));
      handles.push_back(
          allreduce_async(std::span(values[i]), ReduceOp::sum, {.name = fmt::format("row24.{}", i)}));
    }
    for (const auto& handle : handles) handle.wait();
  };
  for (int step = 0; step < 5; ++step) {
    std::jthread other([&] { call_half(1); });
    call_half(0);
    other.join();
    const int all_ranks = size() * (size() - 1) / 2;
    for (int i = 0; i < kNames; ++i) EXPECT_THAT(values[i], Each(static_cast<float>(size() * i + all_ranks)));
  }
}

// Rows 28 to 33: this rank's vectors in the set.
struct AdasumRow {
  std::vector<std::vector<float>> vectors;
  float x, y;
};
const std::vector<AdasumRow> kAdasumRows = {{{{1, 0}, {0, 1}}, 1, 1},
                                            {{{2, 0}, {2, 0}}, 2, 0},
                                            {{{1, 0}, {1, 1}}, 1.25, 0.75},
                                            {{{3, 4}, {0, 0}}, 3, 4},
                                            {{{1, 0}, {1, 1}, {0, 2}, {1, -1}}, 1.3721719f, 0.8829185f},
                                            {{{1, 0}, {1, 1}, {0, 2}}, 0.95f, 1.65f}};

// All rows for as many ranks as the set has, at once: the engine reduces them in one buffer.
void check_adasum(const ProcessSet& set) {
  std::vector<std::vector<float>> results;
  std::vector<const AdasumRow*> rows;
  for (const auto& row : kAdasumRows)
    if (static_cast<int>(row.vectors.size()) == set.size()) {
      rows.push_back(&row);
      results.push_back(row.vectors[set.rank()]);
    }
  std::vector<std::span<float>> members(results.begin(), results.end());
  const auto before = engine_statistics(set);
  grouped_allreduce(std::span<const std::span<float>>(members), ReduceOp::adasum, {.process_set = set});
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_THAT(results[i], ElementsAre(FloatNear(rows[i]->x, 1e-6f), FloatNear(rows[i]->y, 1e-6f)))
        << "row " << i << " of " << set.size() << " ranks";
  EXPECT_EQ(engine_statistics(set).reductions - before.reductions, rows.empty() ? 0 : 1);
}

TEST(Eager, AdasumTakesEachTensorOfAFusedBufferByItself) {
  if (size() == 1) GTEST_SKIP() << "nothing to add";
  check_adasum(ProcessSet());
}

TEST(Eager, AdasumOfAProcessSetIsOverItsRanks) {
  for (int first = 0; first + 2 <= size(); ++first)
    for (int count = 2; first + count <= size(); ++count) {
      std::vector<int> ranks(count);
      std::iota(ranks.rbegin(), ranks.rend(), first);
      const auto set = ProcessSet::create(ranks);
      if (set.contains_this_rank()) check_adasum(set);
    }
}

// Row 25.
TEST(Eager, SumsInDisjointSets) {
  NEEDS_RANKS(4);
  const auto even = ProcessSet::create(std::vector{0, 2}), odd = ProcessSet::create(std::vector{1, 3});
  EXPECT_NE(even, odd);
  const auto& own = rank() % 2 == 0 ? even : odd;
  EXPECT_THAT(reduced<float>({static_cast<float>(rank())}, ReduceOp::sum, {.process_set = own}),
              ElementsAre(rank() % 2 == 0 ? 2 : 4));
  EXPECT_EQ(ProcessSet::create({0, 2}), even);
}

// Row 26.
TEST(Eager, RefusesASetThatTheRankIsNotIn) {
  NEEDS_RANKS(4);
  const auto even = ProcessSet::create(std::vector{0, 2});
  if (rank() == 1) {
    EXPECT_THAT([&] { reduced<float>({1}, ReduceOp::sum, {.process_set = even}); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("rank 1 is not in process set")));
  }
}

// Row 27.
TEST(Eager, AveragesOverThoseWhoHaveNotJoined) {
  NEEDS_RANKS(3);
  for (int round = 0; round < 2; ++round) {
    if (rank() < 2) {
      const float own = rank() == 0 ? 2 : 4;
      EXPECT_THAT(reduced<float>({own}, ReduceOp::average, {.name = "row27.a"}), ElementsAre(3));
      EXPECT_THAT(
          reduced<float>({own}, ReduceOp::average, {.name = "row27.b", .join_average = JoinAverage::all}),
          ElementsAre(2));
      EXPECT_THAT(reduced<float>({own}, ReduceOp::min, {.name = "row27.c"}), ElementsAre(2));
      const std::vector<float> row = {own};
      EXPECT_THAT(allgather(std::span(row), {.name = "row27.d"}), ElementsAre(2, 4));
      barrier({.name = "row27.e"});
      std::vector<float> value = {own};
      EXPECT_THAT(
          [&] { broadcast(std::span(value), 0, {.name = "row27.f"}); },
          ThrowsMessage<FailedPreconditionError>(HasSubstr("is not supported while rank 2 has joined")));
    }
    if (rank() == 0) std::this_thread::sleep_for(500ms);  // the others have joined by then
    EXPECT_EQ(join(), 0);
  }
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

// Row 48 needs a session: tests/mpi/eager_beside_session_test.cc. Row 50:
TEST(Eager, HitsTheCacheFromTheSecondStepOn) {
  if (size() == 1) GTEST_SKIP() << "nothing is negotiated";
  const auto before = engine_statistics();
  for (int step = 0; step < 60; ++step) {
    EXPECT_THAT(reduced<float>({1}, ReduceOp::sum, {.name = "row50"}), ElementsAre(size()));
  }
  const auto after = engine_statistics();
  EXPECT_EQ(after.cache_misses - before.cache_misses, 1);
  EXPECT_EQ(after.cache_hits - before.cache_hits, 59);
}

TEST(Eager, GathersAndScattersAtTheRoot) {
  const int root = size() - 1;
  const std::vector<float> own(rank(), static_cast<float>(rank()));
  std::vector<float> expected;
  for (int r = 0; r < size(); ++r) expected.insert(expected.end(), r, static_cast<float>(r));
  EXPECT_EQ(gather(std::span(own), root), rank() == root ? expected : std::vector<float>());
  std::vector<float> all(2 * size());
  std::iota(all.begin(), all.end(), 0.0f);
  if (rank() != root) all.clear();
  EXPECT_THAT(scatter(std::span(all), root),
              ElementsAre(static_cast<float>(2 * rank()), static_cast<float>(2 * rank() + 1)));
}

TEST(Eager, ExchangesObjects) {
  const std::string own = fmt::format("rank {}", rank());
  EXPECT_EQ(broadcast_object(own, size() - 1), fmt::format("rank {}", size() - 1));
  const auto all = allgather_object(own + std::string(rank(), '!'));
  ASSERT_EQ(all.size(), static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) EXPECT_EQ(all[r], fmt::format("rank {}", r) + std::string(r, '!'));
}

TEST(Eager, ReducesEmptyTensors) {
  EXPECT_EQ(allreduce(Tensor::zeros(DType::f32, {0, 3}), ReduceOp::sum).shape(), Shape({0, 3}));
  EXPECT_TRUE(grouped_allreduce(std::vector<Tensor>{}, ReduceOp::sum).empty());
}

TEST(Eager, HandsOutAResultOnce) {
  const auto handle = allreduce_async(Tensor::scalar(1.0f), ReduceOp::sum, {.name = "once"});
  EXPECT_TRUE(handle.wait_for(20s));
  EXPECT_TRUE(handle.poll());
  EXPECT_EQ(handle.wait().value<float>(), static_cast<float>(size()));
  EXPECT_THAT([&] { handle.wait(); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("the result of once was taken already")));
}

TEST(Eager, SplitsTheRanksByColorAndKey) {
  const auto set = ProcessSet::split(rank() % 2, -rank());
  EXPECT_EQ(set.size(), (size() + (rank() + 1) % 2) / 2);
  const auto ranks = set.ranks();
  EXPECT_TRUE(std::is_sorted(ranks.rbegin(), ranks.rend()));
  const std::vector<int> own = {rank()};
  EXPECT_EQ(allgather(std::span(own), {.process_set = set}), ranks);
}

TEST(Eager, NamesTheListsOfAProcessSetThatDiffer) {
  if (size() == 1) GTEST_SKIP();
  EXPECT_THAT([] { ProcessSet::create(std::vector{rank() == 0 ? 0 : 1}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Mismatched process sets for")));
  EXPECT_THAT(
      [] {
        ProcessSet::create(std::vector{0, 0});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("rank 0 stands there twice")));
}

TEST(Eager, RemovesAProcessSet) {
  auto set = ProcessSet::create(std::vector{0});
  if (set.contains_this_rank()) reduced<float>({1}, ReduceOp::sum, {.process_set = set});
  if (size() == 1) return;  // the set of all
  const auto old = set;
  set.remove();
  EXPECT_THAT([&] { reduced<float>({1}, ReduceOp::sum, {.process_set = old}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("it was removed")));
  EXPECT_NE(ProcessSet::create(std::vector{0}), old);
}

TEST(Eager, AnswersEverythingOfASetWithItsFirstErrorAndGoesOnWithOthers) {
  if (size() == 1) GTEST_SKIP();
  std::vector<int> backwards(size());
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  const auto set = ProcessSet::create(backwards);
  if (rank() == 1) {
    auto& thread = detail::current_runtime()->thread();
    thread.call([&] { thread.fail(set.id(), std::make_exception_ptr(UnavailableError("a line is cut"))); });
  }
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT([&] { reduced<float>({1}, ReduceOp::sum, {.process_set = set}); },
                ThrowsMessage<UnavailableError>(HasSubstr("a line is cut")));
  EXPECT_THAT(reduced<float>({1}, ReduceOp::sum), ElementsAre(size()));
}

TEST(Eager, TellsObserversOfEachOperationsWay) {
  struct Recorder final : EngineObserver {
    void add(const EngineEvent& event, const char* what) {
      if (event.name == "observed")
        story += fmt::format("{} {} {} {}; ", what, event.kind, event.shape, event.bytes);
    }
    void submitted(const EngineEvent& event) override { add(event, "submitted"); }
    void negotiated(const EngineEvent& event) override { add(event, "negotiated"); }
    void started(const EngineEvent& event) override { add(event, "started"); }
    void phase(const EngineEvent&, std::string_view) override {}
    void finished(const EngineEvent& event, const std::exception_ptr& error) override {
      add(event, error ? "failed" : "finished");
    }
    std::string story;
  };
  if (size() == 1) GTEST_SKIP() << "nothing is negotiated";
  const auto recorder = std::make_shared<Recorder>();
  observe_engine(recorder);
  std::vector<float> values(5, 1);
  allreduce(std::span(values), ReduceOp::sum, {.name = "observed"});
  observe_engine(nullptr);
  EXPECT_EQ(recorder->story,
            "submitted allreduce [5] 20; negotiated allreduce [5] 20; started allreduce [5] 20; finished "
            "allreduce [5] 20; ");
}

}  // namespace
}  // namespace kolo
