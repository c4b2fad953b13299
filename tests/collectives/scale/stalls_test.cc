// One of a thousand ranks does not come.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/collectives/scale/simulated_fleet.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr int kRanks = 1024, kRanksOfHost = 8;
constexpr StallLimits kLimits{StallLimits::Seconds(1), StallLimits::Seconds(10)};

class Stalls : public testing::Test {
 protected:
  void enter_all_but(const std::vector<int>& missing) {
    for (int rank = 0; rank < kRanks; ++rank)
      if (std::count(missing.begin(), missing.end(), rank) == 0) fleet.enter(rank);
  }
  std::string logged_during(std::chrono::milliseconds time) {
    testing::internal::CaptureStderr();
    fleet.pass(time);
    return testing::internal::GetCapturedStderr();
  }
  bool have_all_but(int silent, const std::string& part) {
    return fleet.all([&](int rank) { return rank == silent || HasPart(fleet.verdict(rank), part); });
  }
  static bool HasPart(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  SimulatedFleet fleet{kRanks, kRanksOfHost, kLimits};
};

TEST_F(Stalls, AreToldOnceWithRangesAndHosts) {
  enter_all_but({700});
  EXPECT_EQ(logged_during(1s), "");
  const std::string log = logged_during(2s);
  const std::string line = "ready on [0-699,701-1023], missing on [700 on node88]";
  ASSERT_THAT(log, HasSubstr(line));
  EXPECT_THAT(log.substr(log.find(line) + 1), Not(HasSubstr("stalled")));
}

TEST_F(Stalls, AreFoundByAFewNotesARank) {
  enter_all_but({700});
  logged_during(1400ms);  // one question to all, and the answers
  EXPECT_LE(fleet.most_partners(), 6U);
  EXPECT_LE(fleet.most_notes(), 8);
  EXPECT_LE(fleet.most_bytes(), 2048);
  logged_during(5s);
  EXPECT_LE(fleet.most_partners(), 6U);
  EXPECT_LE(fleet.most_notes(), 60);
}

TEST_F(Stalls, EndOnAllRanksWithTheSameWords) {
  enter_all_but({700});
  logged_during(9900ms);
  EXPECT_TRUE(fleet.all([&](int rank) { return fleet.verdict(rank).empty(); }));
  logged_during(1500ms);
  const std::string words = fleet.verdict(0);
  EXPECT_THAT(words, HasSubstr("ready on [0-699,701-1023], missing on [700 on node88]; the limit"));
  EXPECT_TRUE(fleet.all([&](int rank) { return fleet.verdict(rank) == words; }));
}

// It passes nothing on, in either direction.
TEST_F(Stalls, NameASilentRankAloneThoughOthersAreBelowIt) {
  fleet.silence(2);
  enter_all_but({2});
  EXPECT_THAT(logged_during(6s), HasSubstr("ready on [0-1,3-1023], missing on [2 on node1]"));
  EXPECT_TRUE(fleet.pass_until(10s, [&] { return have_all_but(2, "missing on [2 on node1]"); }));
}

TEST_F(Stalls, NameSilentRanksBelowEachOther) {
  for (const int rank : {1, 5, 21, 1000}) fleet.silence(rank);
  enter_all_but({1, 5, 21, 1000});
  EXPECT_THAT(logged_during(9s), HasSubstr("missing on [1 on node1,5 on node1,21 on node3,1000 on node126]"));
}

TEST_F(Stalls, EndOnEachRankWhereRankZeroIsSilent) {
  fleet.silence(0);
  enter_all_but({0});
  logged_during(20s);
  EXPECT_TRUE(
      fleet.all([&](int rank) { return HasPart(fleet.verdict(rank), "rank 0 on node1 does not answer"); }));
}

TEST_F(Stalls, AreOverWhenTheRankComes) {
  enter_all_but({700});
  logged_during(5s);
  fleet.enter(700);
  logged_during(3s);
  fleet.forget_traffic();
  EXPECT_EQ(logged_during(30s), "");
  EXPECT_TRUE(fleet.all([&](int rank) { return fleet.verdict(rank).empty(); }));
  EXPECT_LE(fleet.most_notes(), 40) << "it is slow: asked again every five seconds";
}

TEST_F(Stalls, OfFewAmongManyAskThoseAlone) {
  for (const int rank : {600, 601}) fleet.dog(rank).set_members(0, {600, 601});
  fleet.enter(601);
  EXPECT_THAT(logged_during(3s), HasSubstr("ready on [601], missing on [600]"));
  EXPECT_LT(fleet.all_notes(), 200);
}

}  // namespace
}  // namespace kolo
