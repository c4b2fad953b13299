// Ranks that run out of data after different numbers of steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/job/init.h>

namespace kolo {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

// Rank r makes r + 1 steps in each epoch.
TEST(Join, LetsUnnamedCallsOfTheNextEpochMatchAgain) {
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int step = 0; step <= rank(); ++step) {
      std::vector<float> value = {6};
      const auto average = allreduce_async(std::span(value));
      ASSERT_TRUE(average.wait_for(20s)) << average.name() << " of epoch " << epoch;
      average.wait();
      EXPECT_THAT(value, ElementsAre(6)) << "over those that have not joined";
      if (step % 2 == 0) {
        EXPECT_THAT(allgather(std::span(value)), SizeIs(size() - step));
      }
    }
    EXPECT_EQ(join(), size() - 1);
    std::vector<float> value = {static_cast<float>(rank())};
    const auto sum = allreduce_async(std::span(value), ReduceOp::sum);
    ASSERT_TRUE(sum.wait_for(20s)) << sum.name() << " after epoch " << epoch;
    EXPECT_THAT(value, ElementsAre(static_cast<float>(size() * (size() - 1) / 2)));
    barrier();
  }
}

// Each set counts for itself.
TEST(Join, OfASetLeavesTheCountsOfOthersAlone) {
  std::vector<int> backwards;
  for (int r = size() - 1; r >= 0; --r) backwards.push_back(r);
  const EagerOptions in_set{.process_set = ProcessSet::create(backwards)};
  for (int step = 0; step <= rank(); ++step) barrier(in_set);
  join(in_set);
  const auto in_all = barrier_async(), again = barrier_async(in_set);
  EXPECT_TRUE(in_all.wait_for(20s)) << in_all.name();
  EXPECT_TRUE(again.wait_for(20s)) << again.name();
}

// Their sum is beyond f16, their average is not.
TEST(Join, AveragesLargeHalvesOfThoseWhoHaveNotJoined) {
  if (size() < 3) GTEST_SKIP() << "one rank's average has no sum";
  if (rank() > 0) {
    std::vector<Half> values(700, Half(40000.0f));
    allreduce(std::span(values), ReduceOp::average);
    EXPECT_THAT(values, Each(Half(40000.0f)));
  }
  join();
}

}  // namespace
}  // namespace kolo
