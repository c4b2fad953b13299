// Some of a thousand ranks are gone without a word.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/collectives/scale/simulated_fleet.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 1024, kRanksOfHost = 8;
constexpr StallLimits kNever{StallLimits::Seconds(0), StallLimits::Seconds(0)};

class Losses : public testing::Test {
 protected:
  // Their neighbours in the ring of lifelines see it, where these are alive.
  void lose(const std::vector<int>& ranks) {
    for (const int rank : ranks) fleet.silence(rank);
    for (const int rank : ranks)
      for (const int neighbour : {(rank + kRanks - 1) % kRanks, (rank + 1) % kRanks})
        if (!fleet.is_silent(neighbour)) fleet.dog(neighbour).lost(rank, 41);
  }
  bool have_all_heard() {
    return fleet.all(
        [&](int rank) { return fleet.dog(rank).is_anyone_gone() && fleet.dog(rank).given_up(); });
  }

  SimulatedFleet fleet{kRanks, kRanksOfHost, kNever};
};

TEST_F(Losses, ReachAllWithinHalfASecondByAFewNotes) {
  for (int rank = 0; rank < kRanks; ++rank) fleet.enter(rank);
  fleet.pass(1s);
  lose({700});
  EXPECT_TRUE(fleet.pass_until(500ms, [&] { return have_all_heard(); }));
  for (const int rank : {0, 1, 699, 701, 1023})
    EXPECT_EQ(fleet.verdict(rank), "rank 700 on node88 is gone (last step 41)");
  fleet.pass(2s);
  EXPECT_LE(fleet.most_notes(), 20)
      << "two ranks have seen it: a word and an answer of each for each neighbour";
  EXPECT_LE(fleet.most_partners(), 9U);
  EXPECT_LE(fleet.most_bytes(), 1024);
}

TEST_F(Losses, OfRankZeroReachAll) {
  fleet.pass(100ms);
  lose({0});
  EXPECT_TRUE(fleet.pass_until(500ms, [&] { return have_all_heard(); }));
}

TEST_F(Losses, OfAHostWithTheTopOfTheTreeReachAll) {
  fleet.pass(100ms);
  lose({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_TRUE(fleet.pass_until(1s, [&] { return have_all_heard(); }));
  fleet.pass(1s);
  EXPECT_LE(fleet.most_notes(), 100) << "the ranks below the lost ones tell each other";
}

TEST_F(Losses, OnOnePathOfTheTreeReachAll) {
  fleet.pass(100ms);
  lose({1, 5, 21, 85, 341});
  EXPECT_TRUE(fleet.pass_until(1s, [&] { return have_all_heard(); }));
}

// Nobody has seen that these are gone, as by a host that is alive and does not answer.
TEST_F(Losses, GoRoundRanksThatAreSilent) {
  fleet.pass(100ms);
  for (const int rank : {0, 1, 2, 5, 43}) fleet.silence(rank);
  lose({700});
  EXPECT_TRUE(fleet.pass_until(1s, [&] { return have_all_heard(); }));
}

TEST_F(Losses, AreHeardByRanksThatHaveLeft) {
  fleet.pass(100ms);
  for (int rank = 0; rank < kRanks; rank += 2) fleet.leave(rank);
  for (int rank = 1; rank < kRanks; rank += 2) fleet.enter(rank);
  lose({701});
  EXPECT_TRUE(fleet.pass_until(500ms, [&] { return have_all_heard(); }));
  EXPECT_FALSE(fleet.dog(0).have_all_left());
}

// Ranks that leave, are lost or wait, at any time: whoever waits hears why it waits in vain, and nobody else
// hears anything.
TEST(EndsAndLosses, AreNoticedByAllWhoWaitWhateverTheirOrder) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const int ranks = 2 + static_cast<int>(random() % 90);
    SimulatedFleet fleet(ranks, 4, kNever, seed);
    fleet.turn();
    const bool is_any_lost = random() % 2 == 0, is_any_gone = is_any_lost || random() % 3 != 0;
    const int bad = 1 + static_cast<int>(random() % std::min(ranks - 1, 5));
    std::vector<int> order(static_cast<std::size_t>(ranks));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<int> turns(order.size());  // of each rank's end, loss or wait
    for (int& turn : turns) turn = static_cast<int>(random() % 40);
    for (int turn = 0; turn < 40; ++turn) {
      for (std::size_t i = 0; i < order.size(); ++i) {
        const int rank = order[i];
        if (turns[i] != turn || fleet.is_silent(rank)) continue;
        if (!is_any_gone || static_cast<int>(i) >= bad) {
          fleet.enter(rank);
        } else if (is_any_lost && i % 2 == 0) {
          fleet.silence(rank);
          for (const int by : {(rank + 1) % ranks, (rank + ranks - 1) % ranks})
            if (!fleet.is_silent(by)) fleet.dog(by).lost(rank, 7);
        } else {
          fleet.leave(rank);
        }
      }
      // A loss that its neighbours could not tell, as they were lost in the same turn, others see.
      fleet.turn();
    }
    const auto heard = [&](int rank) { return !fleet.is_waiting(rank) || !fleet.verdict(rank).empty(); };
    if (is_any_gone) EXPECT_TRUE(fleet.pass_until(3s, [&] { return fleet.all(heard); }));
    else EXPECT_TRUE(fleet.all([&](int rank) { return fleet.verdict(rank).empty(); }));
  }
}

}  // namespace
}  // namespace kolo
