// Eager collectives of process sets, of ranks that have joined, and by Adasum.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include <kolo/collectives/job/runtime.h>
#include <kolo/core/base/error.h>
#include <tests/mpi/eager_calls.h>

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::ThrowsMessage;

using namespace std::chrono_literals;

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

}  // namespace
}  // namespace kolo
