// A thousand ranks agree on the operations of a step.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/collectives/engine/simulated_negotiation.h"

namespace kolo::detail {
namespace {

constexpr int kRanks = 1024;

TEST(Steps, TakeOneNoteUpAndOneToEachChild) {
  SimulatedNegotiation ranks(kRanks, 16);
  ranks.submit_everywhere(allreduce_request("g"));
  ranks.settle();
  std::vector<std::int64_t> messages, bytes;
  for (int rank = 0; rank < kRanks; ++rank) {
    messages.push_back(ranks.rank(rank).counts().messages);
    bytes.push_back(ranks.rank(rank).counts().bytes);
  }
  for (int step = 0; step < 3; ++step) {
    ranks.submit_everywhere(allreduce_request("g"));
    ranks.settle();
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(ranks.decisions(rank).size(), 4U);
    EXPECT_LE(ranks.rank(rank).counts().messages - messages[static_cast<std::size_t>(rank)], 3 * 5);
    EXPECT_LE(ranks.rank(rank).counts().bytes - bytes[static_cast<std::size_t>(rank)], 3 * 5 * 64);
  }
}

TEST(Steps, TellAllThatARankHasGoneByOneNoteToEachChild) {
  SimulatedNegotiation ranks(kRanks, 16);
  ranks.rank(0).gone(700);
  ranks.settle();
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_THAT(ranks.story(rank), testing::ElementsAre("gone 700"));
    EXPECT_LE(ranks.rank(rank).counts().messages, 4);
  }
}

}  // namespace
}  // namespace kolo::detail
