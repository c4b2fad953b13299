// kolorun where a request to stop comes before the ranks can take it, and where ranks do not meet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>

#include "tests/launcher/kolorun_program.h"

namespace kolo::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr const char* kEnded =
    "kolorun: the request to stop has ended the ranks, which do not take it, or not yet\n";

// A rank gets the request in its trap, or dies of it before that stands; kolorun says so where none has got
// it.
TEST(EarlyStop, IsNotLostWhileMpirunStartsTheRanks) {
  for (const int number : {SIGTERM, SIGUSR1}) {
    for (const int delay_ms : {0, 20, 40, 80}) {
      RunningProgram program(kolorun(
          {"-q", "-n", "2", "sh", "-c", "trap 'echo saved; exit 75' TERM USR1; while sleep 0.1; do :; done"},
          {"KOLO_STOPPED_EXIT_CODE=75"}));
      ASSERT_TRUE(wait_for_child(program, "trap")) << program.err();
      poll(nullptr, 0, delay_ms);
      program.signal(number);
      EXPECT_EQ(program.finish(), 75) << number << " after " << delay_ms << " ms: " << program.err();
      if (program.err() != kEnded) {
        EXPECT_THAT(program.out(), HasSubstr("saved")) << number << " after " << delay_ms << " ms";
      }
    }
  }
}

TEST(EarlyStop, IsNoFailureOfTheNetworksMeasurement) {
  RunningProgram program(kolorun({"-q", "-n", "2", "--check-network", "--", "sh", "-c", "exec sleep 60"},
                                 {"KOLO_STOPPED_EXIT_CODE=75"}));
  ASSERT_TRUE(wait_for_child(program, "kolo-network-probe")) << program.err();
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish(), 75) << program.err();
  EXPECT_THAT(program.err(), Not(HasSubstr("could not be measured")));

  RunningProgram alone(kolorun({"-n", "2", "--check-network"}));
  ASSERT_TRUE(wait_for_child(alone, "kolo-network-probe")) << alone.err();
  alone.signal(SIGTERM);
  EXPECT_EQ(alone.finish(), 128 + SIGTERM) << alone.err();
}

TEST(EarlyStop, IsAStopWhereItEndsTheRanks) {
  for (const int number : {SIGTERM, SIGUSR1}) {
    for (const bool has_code : {true, false}) {
      RunningProgram program(kolorun({"-q", "-n", "2", "sh", "-c", "echo ready; exec sleep 60"},
                                     {has_code ? "KOLO_STOPPED_EXIT_CODE=75" : "KOLO_STOPPED_EXIT_CODE=0"}));
      ASSERT_TRUE(program.wait_for("ready", 2)) << program.err();
      program.signal(number);
      EXPECT_EQ(program.finish(), has_code ? 75 : 128 + number) << program.err();
      EXPECT_EQ(program.err(), kEnded);
    }
  }
}

// The code by which an elastic job grows is kolorun's own, and its user would see 0.
TEST(EarlyStop, KeepsTheSignalsCodeWhereAnElasticJobHasNone) {
  for (const int number : {SIGTERM, SIGUSR1}) {
    RunningProgram program(
        kolorun({"-q", "--elastic", "-H", "localhost:2", "sh", "-c", "echo ready; exec sleep 60"}));
    ASSERT_TRUE(program.wait_for("ready", 2)) << program.err();
    program.signal(number);
    EXPECT_EQ(program.finish(), 128 + number) << program.err();
  }
}

// A rank is told by its environment, which a title has written over here.
TEST(Stop, ReachesRanksThatDoNotLookLikeRanks) {
  RunningProgram program(
      kolorun({"-q", "-n", "2", "perl", "-e",
               "$0 = 'x' x 30000; $SIG{TERM} = sub { exit 75 }; $| = 1; print \"ready\\n\"; "
               "sleep 1 while 1"},
              {"KOLO_STOPPED_EXIT_CODE=75"}));
  ASSERT_TRUE(program.wait_for("ready", 2)) << program.err();
  poll(nullptr, 0, 10500);  // they count from then on
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish(), 75);
  EXPECT_EQ(program.err(), "");
}

// The first one waits for ranks.
TEST(EarlyStop, EndsAtOnceOnASecondSignal) {
  RunningProgram program(kolorun({"-q", "-n", "2", "--stop-grace", "60", "sh", "-c",
                                  "trap '' TERM; echo ready; while :; do sleep 0.1; done"}));
  ASSERT_TRUE(wait_for_child(program, "trap")) << program.err();
  program.signal(SIGTERM);
  program.signal(SIGINT);
  EXPECT_NE(program.finish(), -1) << program.err();
}

// mpirun takes the rank for done, and the other would wait in MPI_Init for ever.
TEST(Ranks, ThatEndBeforeTheOthersMeetThemEndTheJob) {
  const Ended ended = run({"-q", "-n", "2", "--", "sh", "-c",
                           std::string("[ $OMPI_COMM_WORLD_RANK = 0 ] || exit 0; exec ") + PRINTING_RANK});
  EXPECT_NE(ended.code, 0) << ended.out;
  EXPECT_THAT(lines_of(ended.err),
              ElementsAre(MatchesRegex("rank 1 on [^ ]+ ended with exit code 0 before it came to MPI_Init, "
                                       "where the others wait for it")));
}

// Where the launcher tells nothing of it, as over several hosts.
TEST(Ranks, ThatDoNotComeToInitAreWaitedForUpToTheLimit) {
  const Ended ended = run({"-q", "-n", "2", "--", "sh", "-c",
                           std::string("[ $OMPI_COMM_WORLD_RANK = 0 ] || sleep 20; exec ") + PRINTING_RANK},
                          {"KOLO_STALL_WARNING_S=0.5", "KOLO_STALL_ABORT_S=1.5"});
  EXPECT_NE(ended.code, 0) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("init: waiting for the other ranks for 0.5 s: "));
  EXPECT_THAT(ended.err, HasSubstr(" ends: init has waited 1.5 s for the others (KOLO_STALL_ABORT_S): "));
}

}  // namespace
}  // namespace kolo::launcher
