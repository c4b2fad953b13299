#include <kolo/launcher/hydra_words.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <sstream>

namespace kolo::launcher {
namespace {

using testing::SizeIs;

HydraWords words_of(const std::string& text) {
  HydraWords words;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(words.takes(line)) << line;
  return words;
}

// As MPICH 4.0.2 prints it.
const std::string kPage =
    "===================================================================================\n"
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
    "=   PID 18224 RUNNING AT vm\n"
    "=   EXIT CODE: 9\n"
    "=   CLEANING UP REMAINING PROCESSES\n"
    "=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES\n"
    "===================================================================================\n";
const std::string kKilled =
    "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n"
    "This typically refers to a problem with your application.\n"
    "Please see the FAQ page for debugging suggestions\n";

TEST(HydraWords, NameTheHostOfAKilledRank) {
  const HydraWords words = words_of(kPage + "[mpiexec@vm] Exit codes: [vm] 9,9,9\n" + kKilled);
  const auto dead = words.dead_rank();
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->signal, SIGKILL);
  EXPECT_EQ(dead->host, "vm");
  EXPECT_EQ(dead->rank, -1) << "hydra has killed the others, too";
  EXPECT_FALSE(words.failed_rank(0));
  EXPECT_THAT(words.page(), SizeIs(10));
}

TEST(HydraWords, NameAKilledRankThatIsTheOnlyOne) {
  const auto dead = words_of(kPage + "[mpiexec@vm] Exit codes: [vm] 0,9,0\n" + kKilled).dead_rank();
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->rank, 1);
}

TEST(HydraWords, NameTheRankThatEndedWithACode) {
  const HydraWords words = words_of("[mpiexec@vm] Exit codes: [vm] 0,768,0\n");
  EXPECT_FALSE(words.dead_rank());
  const auto failed = words.failed_rank(0);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->rank, 1);
  EXPECT_EQ(failed->code, 3);
  EXPECT_FALSE(words.failed_rank(3)) << "the code of a stop";
  EXPECT_THAT(words.page(), SizeIs(0));
}

// Of several hosts, written from hydra's source.
TEST(HydraWords, CountRanksThroughTheHosts) {
  const auto failed = words_of("[mpiexec@a] Exit codes: [a] 0,0\n[b] 0,1024\n").failed_rank(0);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->rank, 3);
  EXPECT_EQ(failed->host, "b");
  EXPECT_EQ(failed->code, 4);
}

TEST(HydraWords, AreNoLinesOfRanks) {
  HydraWords words;
  for (const char* line : {"", "[0/2 vm] I", "== 3 ==", "Exit codes: 3", "[proxy:0:0@vm] execvp error"})
    EXPECT_FALSE(words.takes(line)) << line;
}

}  // namespace
}  // namespace kolo::launcher
