// Eager collectives under mpirun: the collectives' worked examples, for any number of ranks where they allow.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <thread>

#include <kolo/collectives/engine/observer.h>
#include <kolo/core/base/error.h>
#include <tests/mpi/eager_calls.h>

namespace kolo {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::ThrowsMessage;

using namespace std::chrono_literals;

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
