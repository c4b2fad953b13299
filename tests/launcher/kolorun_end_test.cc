// How a job of kolorun ends: by signals, dead ranks and errors, and what it says of that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <kolo/core/base/stop_time.h>

#include "tests/launcher/kolorun_program.h"

namespace kolo::launcher {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Kolorun, NamesTheRankThatDiedAndItsLastStep) {
  RunningProgram program(command({"-n", "2"}, {kRank, "41"}));
  ASSERT_TRUE(program.wait_for("ready", 2));
  const auto start = std::chrono::steady_clock::now();
  kill(program.numbers_after("[1] ready ").at(0), SIGKILL);
  EXPECT_EQ(program.finish(), 137);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_THAT(program.err(),
              testing::ContainsRegex("rank 1 on [^ ]+ is gone \\(last step 41\\)\n"));  // told by rank 0
  EXPECT_THAT(program.err(), Not(HasSubstr("\x01")));
}

TEST(Kolorun, SaysThatTheLastStepIsUnknownWhereNoRankToldOne) {
  RunningProgram program(command({"-q", "-n", "2"}, {kRank}));
  ASSERT_TRUE(program.wait_for("ready", 2));
  kill(program.numbers_after("[0] ready ").at(0), SIGKILL);
  EXPECT_EQ(program.finish(), 137);
  EXPECT_THAT(lines_of(program.err()),
              ElementsAre(testing::MatchesRegex("rank 0 on [^ ]+ is gone \\(last step unknown\\)")));
}

TEST(Kolorun, AsksTheRanksToStopAndEndsWithTheirCode) {
  for (const int number : {SIGTERM, SIGINT, SIGUSR1}) {
    RunningProgram program(command({"-q", "-n", "2"}, {kRank, "7"}));
    ASSERT_TRUE(program.wait_for("ready", 2));
    program.signal(number);
    EXPECT_EQ(program.finish(), 0) << program.err();
    EXPECT_THAT(program.out(), AllOf(HasSubstr("[0] saved\n"), HasSubstr("[1] saved\n")));
    EXPECT_EQ(program.err(), "");
  }
}

// As a batch system may ask within the first moments of a job; nothing was done, and it is to be queued
// again.
TEST(Kolorun, EndsWithTheCodeOfAStopWhereNoRankHasStartedYet) {
  const std::string folder = testing::TempDir() + "kolorun_end_test", begun = folder + "/begun";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  // Waits in the shell itself, so without a child, before it becomes mpirun.
  std::ofstream(folder + "/mpirun") << "#!/bin/sh\nPATH=${PATH#*:}\n"
                                    << "[ $1 = --version ] || { : > " << begun << "; read go < " << folder
                                    << "/go; }\nexec mpirun \"$@\"\n";
  std::filesystem::permissions(folder + "/mpirun", std::filesystem::perms::owner_all);
  ASSERT_EQ(mkfifo((folder + "/go").c_str(), 0600), 0);
  RunningProgram program(
      kolorun({"-q", "-n", "2", "--", kRank},
              {"PATH=" + folder + ":" + std::getenv("PATH"), "KOLO_STOPPED_EXIT_CODE=75"}));
  for (int look = 0; look < 3000 && !std::filesystem::exists(begun); ++look) poll(nullptr, 0, 10);
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish(), 75);
  EXPECT_EQ(program.err(), "kolorun: the request to stop came before the ranks had started\n");
}

// On a busy machine the ranks of a stop end at different times. mpirun kills those that end a second after
// the first one, and may return the code of one of these.
TEST(Kolorun, EndsWithTheCodeOfAStopWhereMpirunHasKilledSlowRanks) {
  const std::string folder = testing::TempDir() + "kolorun_slow_end";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const auto& [first, expected] : {std::pair(75, 75), std::pair(7, 7)}) {
    std::ofstream(folder + "/mpirun")
        << "#!/bin/sh\nPATH=${PATH#*:}\n[ $1 = --version ] && exec mpirun \"$@\"\ncat >&2 <<END\n"
        << std::string(74, '-')
        << "\nmpirun detected that one or more processes exited with non-zero status, "
        << "thus causing\nthe job to be terminated. The first process to do so was:\n\n"
        << "  Process name: [[19439,1],1]\n  Exit code:    " << first << "\n"
        << std::string(74, '-') << "\nEND\nexit 137\n";
    std::filesystem::permissions(folder + "/mpirun", std::filesystem::perms::owner_all);
    RunningProgram program(
        kolorun({"-q", "-n", "2", "--", kRank},
                {"PATH=" + folder + ":" + std::getenv("PATH"), "KOLO_STOPPED_EXIT_CODE=75"}));
    EXPECT_EQ(program.finish(), expected) << program.err();
  }
}

TEST(Kolorun, HandsOnSigusr2) {
  RunningProgram program(
      command({"-q", "-n", "2"},
              {"sh", "-c", "trap 'echo usr2; exit 0' USR2; echo ready; while :; do sleep 0.1; done"}));
  ASSERT_TRUE(program.wait_for("ready", 2));
  program.signal(SIGUSR2);
  EXPECT_EQ(program.finish(), 0);
  EXPECT_THAT(program.out(), AllOf(HasSubstr("[0] usr2"), HasSubstr("[1] usr2")));
}

TEST(Kolorun, EndsRanksThatDoNotStopWithinTheGrace) {
  RunningProgram program(command({"-n", "2", "--stop-grace", "0.5"}, kStubborn));
  ASSERT_TRUE(program.wait_for("ready", 2));
  program.signal(SIGTERM);
  EXPECT_GT(program.finish(), 0);
  for (const int rank : program.numbers_after("ready ")) EXPECT_FALSE(is_alive(rank));
}

TEST(Kolorun, EndsAtOnceOnASecondSignal) {
  RunningProgram program(command({"-n", "2", "--stop-grace", "1000"}, kStubborn));
  ASSERT_TRUE(program.wait_for("ready", 2));
  program.signal(SIGTERM);
  program.signal(SIGINT);  // another number: two equal ones may be one by the time they are read
  EXPECT_EQ(program.finish(), 137);
  EXPECT_THAT(program.err(), Not(HasSubstr("--stop-grace")));
  for (const int rank : program.numbers_after("ready ")) EXPECT_FALSE(is_alive(rank));
}

TEST(Kolorun, EndsTheRanksWhenMpirunIsKilled) {
  RunningProgram program(command({"-n", "2"}, kStubborn));
  ASSERT_TRUE(program.wait_for("ready", 2));
  kill(mpirun_of(program), SIGKILL);
  EXPECT_EQ(program.finish(), 137);
  EXPECT_EQ(program.err(), "kolorun: signal 9 (Killed) has ended mpirun, and the ranks with it\n");
  for (const int rank : program.numbers_after("ready ")) EXPECT_FALSE(is_alive(rank));
}

// Without what the rank tells of its save it would be asked 1.4 s before the end, and be killed before it has
// saved again.
TEST(Kolorun, AsksTheRanksToStopTwiceALastSaveBeforeTheJobsTimeEnds) {
  using namespace std::chrono_literals;
  const std::string folder = testing::TempDir() + "/squeue";
  const auto end = std::chrono::system_clock::now() + 16s;
  std::string text = kolo::detail::date_text(end);
  text[text.find(' ')] = 'T';
  ASSERT_EQ(std::system(("mkdir -p " + folder).c_str()), 0);
  std::ofstream(folder + "/squeue") << "#!/bin/sh\necho " << text << "\n";
  ASSERT_EQ(std::system(("chmod +x " + folder + "/squeue").c_str()), 0);
  const std::string saves =
      R"(printf '\001kolo save-took 1000\n' >&2; trap 'echo asked; exit 0' TERM; while sleep 0.1; do :; done)";
  const Ended ended = run({"-q", "--launcher", "mpirun", "--host", "localhost", "sh", "-c", saves},
                          {"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=localhost", "SLURM_TASKS_PER_NODE=1",
                           std::string("PATH=") + folder + ":" + std::getenv("PATH")});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "asked\n");
  EXPECT_THAT(ended.err, AllOf(HasSubstr("kolorun: the job's time ends at " + kolo::detail::clock_text(end)),
                               HasSubstr("; asking the ranks to stop (the last save took 1 s)\n"),
                               Not(HasSubstr("save-took"))));
  EXPECT_LT(std::chrono::system_clock::now(), end - 4s) << "12 s before are asked for";
}

TEST(QuietKolorun, LeavesOutMpirunsBanner) {
  EXPECT_THAT(run({"-n", "2", "--", "sh", "-c", "exit 3"}).err, HasSubstr("non-zero exit code"));
  EXPECT_THAT(
      lines_of(
          run({"-q", "-n", "2", "--", "sh", "-c", "[ $OMPI_COMM_WORLD_RANK = 0 ] || exit 3; sleep 1"}).err),
      ElementsAre(testing::MatchesRegex("rank 1 on [^ ]+ ended with exit code 3")));
}

TEST(QuietKolorun, SaysInOneLineWhichRankLeftWithoutFinalizing) {
  const Ended ended = run({"-q", "-n", "2", "--", FAILING_RANK, "early"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(lines_of(ended.err),
              ElementsAre(testing::MatchesRegex("rank 1 on [^ ]+ ended without MPI_Finalize, which .*")));
}

// Open MPI may lose the lines on it, on a busy machine above all: then the code is left.
TEST(QuietKolorun, SaysInOneLineWhichErrorOfMpiEndedARank) {
  const Ended ended = run({"-q", "-n", "2", "--", FAILING_RANK, "error"});
  EXPECT_GT(ended.code, 0);
  EXPECT_THAT(lines_of(ended.err),
              ElementsAre(testing::MatchesRegex(
                  "(rank 1 on [^ ]+ was ended by an error in MPI_Send: MPI_ERR_RANK: invalid rank|"
                  "rank 1 on [^ ]+ ended with exit code 6)")));
}

TEST(QuietKolorun, SaysThatASecondSignalHasEndedTheRanks) {
  RunningProgram program(command({"-q", "-n", "2", "--stop-grace", "1000"}, kStubborn));
  ASSERT_TRUE(program.wait_for("ready", 2));
  program.signal(SIGINT);
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish(), 137);
  EXPECT_THAT(lines_of(program.err()),
              ElementsAre(testing::MatchesRegex("kolorun: a second signal, SIG(TERM|INT), has ended the "
                                                "ranks at once; what was not saved is lost")));
}

// A program that never had the time to end by itself needs no advice on its exit code.
TEST(QuietKolorun, SaysThatAJobWhoseRanksWereEndedIsNotQueuedAgain) {
  for (const bool signals_again : {true, false}) {
    RunningProgram program(
        command({"-q", "-n", "2", "--requeue", "--stop-grace", signals_again ? "1000" : "0.5"}, kStubborn));
    ASSERT_TRUE(program.wait_for("ready", 2));
    program.signal(SIGINT);
    if (signals_again) program.signal(SIGTERM);
    EXPECT_GT(program.finish(), 0);
    EXPECT_THAT(
        lines_of(program.err()),
        ElementsAre(HasSubstr("; what was not saved is lost"),
                    "kolorun: the ranks were ended before they had stopped: the job is not queued again"));
  }
}

TEST(QuietKolorun, SaysThatTheGraceWasNotEnoughAndThatAlone) {
  RunningProgram program(command({"-q", "-n", "2", "--stop-grace", "0.5"}, kStubborn));
  ASSERT_TRUE(program.wait_for("ready", 2));
  program.signal(SIGTERM);
  EXPECT_GT(program.finish(), 0);
  EXPECT_THAT(
      lines_of(program.err()),
      ElementsAre("kolorun: the ranks did not stop within 0.5 s (--stop-grace) and were ended; what was "
                  "not saved is lost"));
}

}  // namespace
}  // namespace kolo::launcher
