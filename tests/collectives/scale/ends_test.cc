// A thousand ranks leave: together, early, and while others wait for them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/collectives/scale/simulated_fleet.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr int kRanks = 1024, kRanksOfHost = 8;
constexpr StallLimits kNever{StallLimits::Seconds(0), StallLimits::Seconds(0)};

SimulatedFleet fleet_of(int ranks, std::uint32_t seed = 1) { return {ranks, kRanksOfHost, kNever, seed}; }

bool have_all_left(SimulatedFleet& fleet) {
  return fleet.all([&](int rank) { return fleet.dog(rank).have_all_left(); });
}

TEST(Ends, TakeTenNotesAndSixPartnersARank) {
  auto fleet = fleet_of(kRanks);
  std::vector<int> order(kRanks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), fleet.random());
  for (const int rank : order) {  // over about a second
    fleet.leave(rank);
    if (fleet.random()() % 20 == 0) fleet.turn();
  }
  const auto time = fleet.pass_until(2s, [&] { return have_all_left(fleet); });
  ASSERT_TRUE(time);
  EXPECT_LE(*time, 500ms);
  EXPECT_LE(fleet.most_notes(), 10);
  EXPECT_LE(fleet.most_partners(), 6U);
  EXPECT_LE(fleet.most_bytes(), 20) << "a note of an end is one number";
  EXPECT_LE(fleet.all_notes(), 4 * kRanks);
}

TEST(Ends, WaitForTheLastRank) {
  auto fleet = fleet_of(kRanks);
  for (int rank = 0; rank < kRanks; ++rank)
    if (rank != 700) fleet.leave(rank);
  fleet.pass(5s);
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_FALSE(fleet.dog(rank).have_all_left());
  fleet.forget_traffic();
  fleet.pass(60s);
  EXPECT_EQ(fleet.all_notes(), 0);
  fleet.leave(700);
  EXPECT_TRUE(fleet.pass_until(500ms, [&] { return have_all_left(fleet); }));
}

TEST(Ends, ReachAllWhoWaitForARankThatHasLeft) {
  auto fleet = fleet_of(kRanks);
  for (int rank = 0; rank < kRanks; rank += 2) fleet.enter(rank);  // before
  fleet.pass(5s);
  fleet.leave(701);
  const auto heard = [&](int rank) {
    return rank == 701 || fleet.verdict(rank) == "rank 701 on node88 is gone (exited)";
  };
  fleet.pass(10s);
  for (int rank = 1; rank < kRanks; rank += 2)  // after
    if (rank != 701) fleet.enter(rank);
  EXPECT_TRUE(fleet.pass_until(1500ms, [&] { return fleet.all(heard); }));
  EXPECT_LE(fleet.most_partners(), 6U);
  EXPECT_LE(fleet.most_notes(), 60);
}

TEST(Ends, AreHeardOfWithinASecond) {
  auto fleet = fleet_of(kRanks);
  for (int rank = 0; rank < kRanks; ++rank)
    if (rank != 1023) fleet.enter(rank);
  fleet.pass(1s);
  EXPECT_EQ(fleet.all_notes(), 0);
  fleet.leave(1023);
  EXPECT_TRUE(fleet.pass_until(
      1s, [&] { return fleet.all([&](int rank) { return rank == 1023 || !fleet.verdict(rank).empty(); }); }));
}

// Ranks 1, 5 to 8 and all that is below those.
TEST(Ends, OfAWholeSubtreeReachTheOthers) {
  auto fleet = fleet_of(kRanks);
  const auto is_below_1 = [](int rank) {
    while (rank > 1) rank = (rank - 1) / 4;
    return rank == 1;
  };
  for (int rank = 0; rank < kRanks; ++rank)
    if (is_below_1(rank)) fleet.leave(rank);
  fleet.pass(1s);
  for (int rank = 0; rank < kRanks; ++rank)
    if (!is_below_1(rank)) fleet.enter(rank);
  EXPECT_TRUE(fleet.pass_until(1s, [&] {
    return fleet.all([&](int rank) {
      return is_below_1(rank) || fleet.verdict(rank) == "rank 1 on node1 is gone (exited)";
    });
  }));
}

TEST(Ends, LeaveAloneWhatTheRankHadFinished) {
  auto fleet = fleet_of(64);
  for (int rank = 0; rank < 64; ++rank) fleet.finish(rank, 7);
  for (int rank = 0; rank < 63; ++rank) fleet.enter(rank, 7);
  fleet.leave(63);
  fleet.pass(5s);
  for (int rank = 0; rank < 63; ++rank) EXPECT_EQ(fleet.verdict(rank), "");
  for (int rank = 0; rank < 63; ++rank) fleet.enter(rank, 8);
  fleet.pass(1s);
  for (int rank = 0; rank < 63; ++rank) EXPECT_THAT(fleet.verdict(rank), HasSubstr("rank 63 on node8"));
}

// The others go on for hours without it, in a process set.
TEST(Ends, CostNothingToThoseWhoDoNotWaitLong) {
  auto fleet = fleet_of(64);
  fleet.leave(5);
  fleet.pass(1s);
  fleet.forget_traffic();
  for (int step = 0; step < 100; ++step) {
    for (int rank = 0; rank < 64; ++rank)
      if (rank != 5) fleet.enter(rank, step);
    fleet.pass(60ms);
    for (int rank = 0; rank < 64; ++rank)
      if (rank != 5) fleet.finish(rank, step);
  }
  EXPECT_EQ(fleet.all_notes(), 0);
}

}  // namespace
}  // namespace kolo
