#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

#include <kolo/launcher/host_pool.h>

namespace kolo::launcher {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<Host> kThree = {{"a", 2}, {"b", 2}, {"c", 2}};

std::vector<std::string> names(const std::vector<Host>& hosts) {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(host.name);
  return names;
}

// A pool with a clock of the test's, in seconds.
struct Pool {
  explicit Pool(PoolRules rules = {}, const std::vector<Host>& listed = kThree)
      : hosts(listed), pool(rules, listed) {}

  std::vector<std::string> choose() { return names(pool.choose(now())); }
  std::vector<std::string> growth() const { return names(pool.growth(now())); }
  void lose(const std::string& host) { pool.lose(host, now()); }
  void only(std::initializer_list<std::string> answering) {
    std::vector<SeenHost> seen;
    for (const Host& host : hosts)
      seen.push_back({host, std::find(answering.begin(), answering.end(), host.name) != answering.end()});
    pool.see(seen);
  }
  HostPool::Time now() const { return HostPool::Time() + 1000h + std::chrono::seconds(at); }

  std::vector<Host> hosts;
  HostPool pool;
  int at = 0;
};

TEST(HostPool, StartsOnAllHostsInTheirOrder) {
  Pool pool;
  EXPECT_THAT(pool.pool.choose(pool.now()), ElementsAre(Host{"a", 2}, Host{"b", 2}, Host{"c", 2}));
}

TEST(HostPool, StartsOnThoseThatAnswer) {
  Pool pool;
  pool.only({"a", "c"});
  EXPECT_THAT(pool.choose(), ElementsAre("a", "c"));
}

TEST(HostPool, GivesTheLastHostWhatIsLeftOfTheMostRanks) {
  Pool pool({.max_ranks = 5});
  EXPECT_THAT(pool.pool.choose(pool.now()), ElementsAre(Host{"a", 2}, Host{"b", 2}, Host{"c", 1}));
  Pool small({.max_ranks = 2});
  EXPECT_THAT(small.choose(), ElementsAre("a"));
}

TEST(HostPool, TakesTheFirstRanksAtTheStartAndMoreLater) {
  Pool pool({.first_ranks = 4});
  EXPECT_THAT(pool.choose(), ElementsAre("a", "b"));
  pool.at = 60;
  EXPECT_THAT(pool.growth(), ElementsAre("c"));
  EXPECT_THAT(pool.choose(), ElementsAre("a", "b", "c"));
}

TEST(HostPool, GoesOnWithTheOthersInTheirOrderWhenOneIsLost) {
  Pool pool;
  pool.choose();
  pool.lose("a");
  EXPECT_THAT(pool.choose(), ElementsAre("b", "c"));
}

TEST(HostPool, KnowsAHostWithItsDomain) {
  Pool pool;
  pool.choose();
  pool.lose("c.cluster.example");
  EXPECT_THAT(pool.choose(), ElementsAre("a", "b"));
}

TEST(HostPool, PutsAHostThatReturnsBehindThoseInUse) {
  Pool pool;
  pool.choose();
  pool.lose("a");
  pool.choose();
  pool.at = 60;
  EXPECT_THAT(pool.growth(), ElementsAre("a"));
  EXPECT_THAT(pool.choose(), ElementsAre("b", "c", "a"));
}

TEST(HostPool, StartsNothingBelowTheLeastRanksAndKeepsTheOrderMeanwhile) {
  Pool pool({.min_ranks = 5});
  pool.choose();
  pool.lose("a");
  EXPECT_THAT(pool.choose(), IsEmpty());
  EXPECT_EQ(pool.pool.available_ranks(pool.now()), 4);
  pool.at = 10;
  EXPECT_THAT(pool.choose(), ElementsAre("a", "b", "c"));
}

TEST(HostPool, SaysWhatKeepsItFromStarting) {
  Pool pool({.min_ranks = 6});
  pool.choose();
  pool.lose("b");
  pool.at = 3;
  pool.only({"a", "b"});
  EXPECT_EQ(pool.pool.missing(pool.now()), "4 more ranks: b cools for 7 s, c does not answer");
  Pool one({.min_ranks = 3}, {{"a", 2}, {"b", 1}});
  one.only({"a"});
  EXPECT_EQ(one.pool.missing(one.now()), "1 more rank: b does not answer");
}

TEST(HostPool, KeepsSparesUnusedUntilAHostIsLost) {
  Pool pool({.spares = 1});
  EXPECT_THAT(pool.choose(), ElementsAre("a", "b"));
  pool.at = 100;
  EXPECT_THAT(pool.growth(), IsEmpty());
  pool.lose("a");
  EXPECT_THAT(pool.choose(), ElementsAre("b", "c"));
  pool.at = 1000;
  EXPECT_THAT(pool.growth(), IsEmpty()) << "a is the spare now";
}

TEST(HostPool, KeepsAsManySparesOfWhatDiscoveryAdds) {
  Pool pool({.spares = 1});
  pool.choose();
  pool.pool.see({{{"a", 2}, true}, {{"b", 2}, true}, {{"c", 2}, true}, {{"d", 2}, true}});
  pool.at = 60;
  EXPECT_THAT(pool.growth(), ElementsAre("c"));
}

TEST(HostPool, CoolsALostHostTwiceAsLongEachTime) {
  Pool pool;
  pool.choose();
  for (const int seconds : {10, 20, 40, 80, 160, 300, 300}) {
    pool.lose("c");
    EXPECT_EQ(pool.pool.cools_for("c", pool.now()), std::chrono::seconds(seconds));
    EXPECT_THAT(pool.choose(), ElementsAre("a", "b"));
    pool.at += seconds - 1;
    EXPECT_THAT(pool.choose(), ElementsAre("a", "b")) << seconds;
    pool.at += 1;
    EXPECT_THAT(pool.choose(), ElementsAre("a", "b", "c")) << seconds;
  }
}

TEST(HostPool, CoolsHalfAsLongAfterTenMinutesWithoutALoss) {
  Pool pool;
  for (int i = 0; i < 4; ++i) pool.lose("c");  // 10, 20, 40, 80
  pool.at = 600;
  pool.lose("c");
  EXPECT_EQ(pool.pool.cools_for("c", pool.now()), 80s);
  pool.at += 3600;
  pool.lose("c");
  EXPECT_EQ(pool.pool.cools_for("c", pool.now()), 10s);
}

TEST(HostPool, CoolsAsLongAsItIsTold) {
  Pool pool({.least_cooling = 0s, .most_cooling = 0s});
  pool.choose();
  pool.lose("c");
  EXPECT_THAT(pool.choose(), ElementsAre("a", "b", "c"));
}

TEST(HostPool, DoesNotUseACooledHostThatDoesNotAnswer) {
  Pool pool;
  pool.choose();
  pool.lose("c");
  pool.only({"a", "b"});
  pool.at = 11;
  EXPECT_THAT(pool.choose(), ElementsAre("a", "b"));
}

TEST(HostPool, CountsTheSecondKilledRankInTenMinutesAsALossOfTheHost) {
  Pool pool;
  pool.choose();
  EXPECT_FALSE(pool.pool.note_killed_rank("b", pool.now()));
  EXPECT_THAT(pool.choose(), ElementsAre("a", "b", "c"));
  pool.at = 599;
  EXPECT_TRUE(pool.pool.note_killed_rank("b", pool.now()));
  EXPECT_THAT(pool.choose(), ElementsAre("a", "c"));
  EXPECT_EQ(pool.pool.cools_for("b", pool.now()), 10s);
  EXPECT_TRUE(pool.pool.note_killed_rank("b", pool.now()));
  EXPECT_EQ(pool.pool.cools_for("b", pool.now()), 20s);
}

TEST(HostPool, ForgetsAKilledRankAfterTenMinutes) {
  Pool pool;
  EXPECT_FALSE(pool.pool.note_killed_rank("b", pool.now()));
  pool.at = 601;
  EXPECT_FALSE(pool.pool.note_killed_rank("b", pool.now()));
  EXPECT_FALSE(pool.pool.note_killed_rank("a", pool.now())) << "each host has its own count";
}

TEST(HostPool, TellsWhetherOtherHostsCanTakeThePlaceOfOneWhoseRanksAreKilled) {
  const auto kill_twice = [](Pool& pool, const std::string& host) {
    pool.pool.note_killed_rank(host, pool.now());
    return pool.pool.note_killed_rank(host, pool.now());
  };
  Pool pool;
  pool.choose();
  EXPECT_TRUE(kill_twice(pool, "a"));
  EXPECT_TRUE(pool.pool.can_do_without_killers(pool.now()));
  EXPECT_TRUE(kill_twice(pool, "b"));
  EXPECT_TRUE(pool.pool.can_do_without_killers(pool.now())) << "c has lost none";
  pool.pool.note_killed_rank("c", pool.now());
  EXPECT_TRUE(pool.pool.can_do_without_killers(pool.now())) << "c has lost one";
  pool.at = 100;
  pool.pool.note_killed_rank("c", pool.now());
  EXPECT_FALSE(pool.pool.can_do_without_killers(pool.now())) << "though a and b cool no more";
  pool.at = 601;
  EXPECT_TRUE(pool.pool.can_do_without_killers(pool.now())) << "a and b: ten minutes ago";

  Pool only({}, {{"a", 2}});
  EXPECT_TRUE(kill_twice(only, "a"));
  EXPECT_FALSE(only.pool.can_do_without_killers(only.now()));
  Pool large({.min_ranks = 5});
  EXPECT_TRUE(kill_twice(large, "a"));
  EXPECT_FALSE(large.pool.can_do_without_killers(large.now())) << "two hosts have room for 4 ranks";
  Pool away;
  EXPECT_TRUE(kill_twice(away, "a"));
  away.only({"a"});
  EXPECT_FALSE(away.pool.can_do_without_killers(away.now())) << "the others do not answer";
}

TEST(HostPool, GrowsByAWholeHostAndNotTooSoon) {
  Pool pool({.grow_after = 60s});
  pool.only({"a", "b"});
  pool.choose();
  pool.only({"a", "b", "c"});
  pool.at = 59;
  EXPECT_THAT(pool.growth(), IsEmpty());
  pool.at = 60;
  EXPECT_THAT(pool.growth(), ElementsAre("c"));
}

TEST(HostPool, DoesNotGrowByPartOfAHostOrBeyondTheMost) {
  for (const int most : {4, 5}) {
    Pool pool({.max_ranks = most});
    pool.only({"a", "b"});
    pool.choose();
    pool.only({"a", "b", "c"});
    pool.at = 60;
    EXPECT_THAT(pool.growth(), IsEmpty()) << most;
  }
}

TEST(HostPool, DoesNotGrowBeforeTheFirstStart) {
  Pool pool;
  pool.at = 100;
  EXPECT_THAT(pool.growth(), IsEmpty());
}

TEST(HostPool, MovesNoRankOfAHostInUseThatDoesNotAnswer) {
  Pool pool;
  pool.only({"a", "b"});
  pool.choose();
  pool.only({"a", "c"});
  pool.at = 60;
  EXPECT_THAT(pool.growth(), IsEmpty());
}

TEST(HostPool, ForgetsAHostThatIsNotListedAnyMore) {
  Pool pool;
  pool.choose();
  pool.lose("c");
  pool.pool.see({{{"a", 2}, true}, {{"b", 2}, true}});
  EXPECT_THAT(pool.choose(), ElementsAre("a", "b"));
  pool.only({"a", "b", "c"});
  EXPECT_THAT(pool.choose(), ElementsAre("a", "b", "c"));
  pool.lose("c");
  EXPECT_EQ(pool.pool.cools_for("c", pool.now()), 10s);
}

TEST(HostPool, TakesTheSlotsThatTheListSaysNow) {
  Pool pool;
  pool.choose();
  pool.pool.see({{{"a", 4}, true}, {{"b", 1}, true}});
  EXPECT_THAT(pool.pool.choose(pool.now()), ElementsAre(Host{"a", 4}, Host{"b", 1}));
}

TEST(HostPool, LeavesAHostThatIsAboutToGoUntilItHasBeenAway) {
  Pool pool;
  pool.choose();
  pool.pool.drain("b.cluster.example");
  EXPECT_THAT(pool.choose(), ElementsAre("a", "c"));
  EXPECT_EQ(pool.pool.unusable(pool.now()), "b is about to go");
  pool.at = 1000;
  pool.only({"a", "b", "c"});
  EXPECT_THAT(pool.growth(), IsEmpty());
  pool.only({"a", "c"});
  pool.only({"a", "b", "c"});
  EXPECT_THAT(pool.growth(), ElementsAre("b"));
}

TEST(HostPool, TakesNoMoreRanksThanTheProgramDoes) {
  Pool p;
  EXPECT_THAT(p.choose(), ElementsAre("a", "b", "c"));
  p.pool.limit_ranks(4);
  EXPECT_THAT(p.choose(), ElementsAre("a", "b"));
  p.at += 1000;
  EXPECT_THAT(p.growth(), IsEmpty());
}

TEST(HostPool, KnowsWhetherAnyListedHostIsNotInUse) {
  Pool pool({.spares = 1});
  pool.choose();
  EXPECT_FALSE(pool.pool.uses_all());
  Pool all;
  EXPECT_FALSE(all.pool.uses_all());
  all.choose();
  EXPECT_TRUE(all.pool.uses_all());
  all.lose("c");
  all.choose();
  EXPECT_FALSE(all.pool.uses_all());
  EXPECT_EQ(names(all.pool.listed()), names(kThree));
}

TEST(HostPool, KeepsWhatItHasOnHostsThatItDoesNotKnow) {
  Pool pool;
  pool.choose();
  pool.lose("z");
  EXPECT_FALSE(pool.pool.note_killed_rank("z", pool.now()));
  EXPECT_THAT(pool.choose(), ElementsAre("a", "b", "c"));
}

}  // namespace
}  // namespace kolo::launcher
