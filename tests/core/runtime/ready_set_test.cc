#include <kolo/core/runtime/ready_set.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include <kolo/core/runtime/plan.h>

namespace kolo {
namespace {

// Positions in three words of the summary, first and last ones among them.
const std::vector<int> kPositions = {0, 1, 63, 64, 4095, 4096, 8191, 8192, 9999};

template <typename Set>
class ReadySets : public ::testing::Test {};
using Sets = ::testing::Types<ReadySet, SharedReadySet>;
TYPED_TEST_SUITE(ReadySets, Sets);

TYPED_TEST(ReadySets, GiveTheSmallestFirst) {
  TypeParam set(10000);
  for (auto position = kPositions.rbegin(); position != kPositions.rend(); ++position) set.insert(*position);
  for (const int position : kPositions) EXPECT_EQ(set.take(), position);
  EXPECT_EQ(set.take(), -1);
}

TYPED_TEST(ReadySets, TakeAgainWhatWasTakenBefore) {
  TypeParam set(65);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(set.empty());
    set.insert(64);
    EXPECT_FALSE(set.empty());
    EXPECT_EQ(set.take(), 64);
  }
}

TYPED_TEST(ReadySets, OfNoPositionsAreEmpty) {
  TypeParam set(0);
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.take(), -1);
}

TEST(SharedReadySet, GivesEachPositionToOneThread) {
  constexpr int kSize = 5000, kThreads = 4;
  SharedReadySet set(kSize);
  std::atomic<int> left{kSize};
  std::vector<std::vector<int>> taken(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = t; i < kSize; i += kThreads) {
        set.insert(i);
        if (const int position = set.take(); position >= 0) taken[t].push_back(position), --left;
      }
      while (left > 0)
        if (const int position = set.take(); position >= 0) taken[t].push_back(position), --left;
    });
  for (auto& thread : threads) thread.join();
  std::multiset<int> all;
  for (const auto& some : taken) all.insert(some.begin(), some.end());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kSize));
  EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), static_cast<std::size_t>(kSize));
}

// 1e8 · 0.9^n ≤ 5000 from n = ln(5e-5) ÷ ln 0.9 = 93.997 on.
TEST(StepTable, CountsAKernelOfNoCostAsInexpensiveAfterNinetyFourRuns) {
  StepTable::Node node;
  node.cycles = 1e8f;
  int runs = 0;
  for (; !StepTable::is_inexpensive(node); ++runs) StepTable::add_measurement(node, 0);
  EXPECT_EQ(runs, 94);
}

TEST(StepTable, NeverCountsAKernelOfSixThousandCyclesAsInexpensive) {
  StepTable::Node node;
  node.cycles = 1e8f;
  for (int i = 0; i < 10000; ++i) StepTable::add_measurement(node, 6000);
  EXPECT_FALSE(StepTable::is_inexpensive(node));
  EXPECT_NEAR(node.cycles.load(), 6000, 1);
}

}  // namespace
}  // namespace kolo
