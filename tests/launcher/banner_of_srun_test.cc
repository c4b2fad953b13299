// What BannerReader makes of the words of srun and of Slurm's daemons; banner_test.cc: of mpirun's and ssh's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include <kolo/launcher/banner.h>

namespace kolo::launcher {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(BannerOfSrun, NamesTheRankThatWasKilled) {
  BannerReader reader(true);
  EXPECT_THAT(reader.read("srun: error: node2: task 1: Killed"), IsEmpty());
  ASSERT_TRUE(reader.dead_rank());
  EXPECT_EQ(reader.dead_rank()->rank, 1);
  EXPECT_EQ(reader.dead_rank()->host, "node2");
  EXPECT_TRUE(reader.failing());
  BannerReader several(false);
  several.read("srun: error: node4: tasks 6-7: Segmentation fault (core dumped)");
  EXPECT_EQ(several.dead_rank()->rank, 6);
}

TEST(BannerOfSrun, TakesNoRankForDeadThatItHasEndedOrThatEndedItself) {
  BannerReader reader(false);
  EXPECT_THAT(reader.read("srun: error: node3: task 2: Exited with exit code 143"), SizeIs(1));
  reader.read("srun: error: node3: task 2: Terminated");
  EXPECT_FALSE(reader.dead_rank());
  EXPECT_TRUE(reader.failing());
}

TEST(BannerOfSrun, TakesNoRankForDeadThatItKillsAfterAnotherHasFailed) {
  BannerReader reader(false);
  reader.read("srun: Job step aborted: Waiting up to 7 seconds for job step to finish.");
  reader.read("srun: error: node1: task 0: Killed");
  EXPECT_EQ(reader.dead_rank()->rank, 0) << "as far as is known by now";
  reader.read("srun: error: node2: task 1: Exited with exit code 3");
  reader.read("srun: error: node2: task 2: Exited with exit code 4");
  EXPECT_FALSE(reader.dead_rank());
  ASSERT_TRUE(reader.failed_rank());
  EXPECT_EQ(reader.failed_rank()->rank, 1);
  EXPECT_EQ(reader.failed_rank()->host, "node2");
  EXPECT_EQ(reader.failed_rank()->code, 3);
  EXPECT_TRUE(reader.failed_rank()->is_task);
}

std::chrono::steady_clock::time_point time_of_test;

// Where the site's KillWait is over before kolorun ends the job itself, srun says no word of an abort.
TEST(BannerOfSrun, TakesNoRankForDeadThatSlurmKillsWhenItsKillWaitIsOver) {
  const auto ended_after = [](std::chrono::milliseconds wait) {
    BannerReader reader(false, 0, [] { return time_of_test; });
    reader.read("srun: error: node2: task 1: Exited with exit code 3");
    reader.read("srun: launch/slurm: _step_signal: Terminating StepId=1.0");
    time_of_test += wait;
    reader.read("slurmstepd-node1: error: *** STEP 1.0 ON node1 CANCELLED AT 2026-11-28T09:08:36 ***");
    reader.read("srun: error: node1: task 0: Killed");
    return reader.dead_rank();
  };
  EXPECT_FALSE(ended_after(std::chrono::seconds(2)));
  ASSERT_TRUE(ended_after(std::chrono::milliseconds(100))) << "killed before, told after the other's end";
  EXPECT_EQ(ended_after(std::chrono::milliseconds(100))->rank, 0);
}

TEST(BannerOfSrun, NamesTheRankThatWasKilledBeforeItEndedTheOthers) {
  BannerReader reader(false);
  reader.read("srun: error: node2: task 1: Killed");
  reader.read("srun: Job step aborted: Waiting up to 7 seconds for job step to finish.");
  reader.read("srun: error: node1: task 0: Exited with exit code 1");
  EXPECT_EQ(reader.dead_rank()->rank, 1);
}

TEST(BannerOfSrun, NamesTheNodeThatSlurmTakesForDown) {
  BannerReader reader(true);
  EXPECT_THAT(reader.read("srun: error: Node failure on node3"), IsEmpty());
  EXPECT_EQ(reader.lost_host(), "node3");
  EXPECT_TRUE(reader.failing());
}

TEST(BannerOfSrun, NamesAHostWithoutItsDaemonAsOneThatCannotBeReached) {
  BannerReader reader(false);
  const std::string words =
      "Task launch for StepId=43.2 failed on node node3: Communication connection failure";
  EXPECT_THAT(reader.read("srun: error: " + words), IsEmpty());
  EXPECT_EQ(reader.unreachable(), words);
  EXPECT_TRUE(reader.failing());
}

TEST(BannerOfSrun, TellsRanksThatItHasKilledFromOneThatDied) {
  BannerReader ended(true);
  ended.read("srun: Job step aborted: Waiting up to 7 seconds for job step to finish.");
  ended.read("srun: error: node1: task 0: Killed");
  EXPECT_TRUE(ended.dead_rank());
  EXPECT_TRUE(ended.is_dead_with_others());
  BannerReader died(true);
  died.read("srun: error: node1: task 0: Killed");
  EXPECT_FALSE(died.is_dead_with_others());
}

}  // namespace
}  // namespace kolo::launcher
