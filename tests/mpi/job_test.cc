// How a job ends when one rank ends in its own way, and how it begins with wrong options: seen from outside,
// under the real mpirun.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/core/training/temporary_directory.h"
#include "tests/shell_command.h"
#include "tests/support/paths.h"

namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// output: stdout and stderr.
kolo::Ended run(int ranks, const std::string& how, const std::string& environment = "") {
  return kolo::run_command(fmt::format("env MPIRUN_TEST_SECONDS=30 {} {} {} {} {} 2>&1", environment,
                                       kolo::source_path("scripts/mpirun_test"), ranks, KOLO_JOB_PROBE, how));
}

// Where mpirun gives survivors a second.
bool hydra_starts_ranks() { return std::getenv("MPIRUN_TEST_HYDRA") != nullptr; }
constexpr const char* kHydraKills = "hydra kills the survivors of a rank at once";

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Job, EndsWithTheExitCodeOfTheRankThatExits) {
  const auto ended = run(2, "exit3");
  EXPECT_EQ(ended.code, 3) << ended.output;
}

TEST(Job, PrintsTheExceptionThatNobodyCaughtWithItsRank) {
  const auto ended = run(2, "throw");
  EXPECT_EQ(ended.code, 1) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("rank 1 on "), HasSubstr(": the last rank's reason"),
                                  Not(HasSubstr("terminate called"))));
}

TEST(Job, TellsTheOthersWhichRankReturnedFromMain) {
  const auto ended = run(3, "return");
  EXPECT_EQ(ended.code, 1) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("rank 2 on "), HasSubstr("is gone (exited)")));
}

TEST(Job, EndsWellWithoutCallingShutdown) {
  const auto ended = run(2, "nothing");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(ended.output, "");
}

TEST(Job, GoesOnAfterAForkedProcessHasEnded) {
  // A leak sanitizer cannot stop the parent's threads from the child, and then finds leaks that are none.
  const auto ended = run(2, "fork", "ASAN_OPTIONS=detect_leaks=0");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("child ended with 3"), Not(HasSubstr("is gone"))));
}

TEST(Job, RefusesAnOptionThatDoesNotParseOnAllRanks) {
  const auto ended = run(2, "catch", "KOLO_CYCLE_TIME_MS=fast");
  EXPECT_EQ(ended.code, 2) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("InvalidArgument: KOLO_CYCLE_TIME_MS=\"fast\""), HasSubstr("allowed")));
}

TEST(Job, ShowsWhichRanksHaveOtherOptions) {
  const auto ended = run(2, "catch_different");
  EXPECT_EQ(ended.code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("KOLO_BUCKET_BYTES: 1000 on ranks [0]; 1001 on ranks [1]"));
}

TEST(Job, NamesTheNearestKnownVariableOnce) {
  const auto ended = run(2, "nothing", "KOLO_BUCKET_BYTE=1");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("KOLO_BUCKET_BYTE is not an option"),
                                  HasSubstr("\"KOLO_BUCKET_BYTES\""), Not(HasSubstr("[1/2"))));
}

TEST(Job, TakesTheCallersCommunicatorAndLeavesMpiRunning) {
  const auto ended = run(3, "own_communicator");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("world rank 0: rank 2 of 3"), HasSubstr("world rank 2: rank 0 of 3")));
}

TEST(Job, RefusesMpiThatWasBegunForOneThreadAndLeavesItRunning) {
  for (const std::string level : {"single", "funneled"}) {
    const auto ended = run(2, "own_" + level);
    EXPECT_EQ(ended.code, 0) << ended.output;
    EXPECT_THAT(ended.output, AllOf(ContainsRegex("rank 0: init: the program started MPI with MPI_THREAD_"),
                                    ContainsRegex("rank 1: init: the program started MPI with MPI_THREAD_"),
                                    HasSubstr("needs MPI_Init_thread with MPI_THREAD_SERIALIZED")));
  }
}

TEST(Job, RunsOnASubsetOfTheRanksInItsOrder) {
  const auto ended = run(3, "subset");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("subset: rank 0 of 2"), HasSubstr("subset: rank 1 of 2"),
                                  HasSubstr("subset: rank 0 of 1")));
}

const char kShortLimits[] = "KOLO_STALL_WARNING_S=1 KOLO_STALL_ABORT_S=3";

TEST(Job, WarnsOfAStalledStepAndEndsItOnAllRanks) {
  const auto ended = run(3, "stall1", kShortLimits);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(ContainsRegex("stalled: .*\"g\".*waited 1.* s; ready on \\[0,2\\], missing on \\[1\\]"),
                    ContainsRegex("DeadlineExceeded: .*\"g\".*missing on \\[1\\].*rank 0 of 3"),
                    ContainsRegex("DeadlineExceeded: .*\"g\".*missing on \\[1\\].*rank 1 of 3"),
                    ContainsRegex("DeadlineExceeded: .*\"g\".*missing on \\[1\\].*rank 2 of 3")));
}

TEST(Job, WarnsOfAStalledStepWhereTheReportingRankIsTheMissingOne) {
  const auto ended = run(2, "stall0", kShortLimits);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("ready on [1], missing on [0]"),
                                  ContainsRegex("DeadlineExceeded: .*\"g\".*rank 0 of 2"),
                                  ContainsRegex("DeadlineExceeded: .*\"g\".*rank 1 of 2")));
}

// Rank 0, which the watchdogs of the others ask, is not in the set.
TEST(Job, NamesTheRankThatAStepOfAProcessSetWaitsFor) {
  const auto ended = run(3, "stall_in_set", kShortLimits);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("ready on [1], missing on [2]"),
                    ContainsRegex("DeadlineExceeded: .*\"g\".*missing on \\[2\\].*rank 1 of 3")));
}

// Gradients that only some ranks reduce, as the others do not take the branch that does.
TEST(Job, EndsAStepWhoseReductionStandsInABranchThatSomeRanksDoNotTake) {
  const auto ended = run(2, "stall_in_branch", kShortLimits);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(ContainsRegex("stalled: .*\"w\".*ready on \\[0\\], missing on \\[1\\]"),
                    ContainsRegex("DeadlineExceeded: .*\"w\".*missing on \\[1\\].*rank 0 of 2")));
}

TEST(Job, EndsTheEagerOperationsOfASetThatFailsOnAnotherRank) {
  const kolo::TemporaryDirectory folder;  // of flight records
  const auto ended = run(3, "fail_in_set", fmt::format("KOLO_FLIGHT_DIR={}", folder.path()));
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("Unavailable: a line is cut: rank 0 of 3"),
                                  ContainsRegex("Unavailable: .*rank 0.*a line is cut.*rank 1 of 3")));
}

// In a folder of their own, read by kolo-inspect as a user would.
class FlightRecordsOfAJob : public testing::Test {
 protected:
  kolo::Ended run_with_records(const std::string& how, const std::string& environment = "", int ranks = 2) {
    return run(ranks, how, fmt::format("KOLO_FLIGHT_DIR={} {}", folder_.path(), environment));
  }
  std::string inspected() { return inspect_output(folder_.path()); }
  static std::string inspect_output(const std::string& path) {
    return kolo::run_command(fmt::format("{} flight {} 2>&1", kolo::program_path("kolo-inspect"), path))
        .output;
  }
  kolo::TemporaryDirectory folder_;
};

TEST_F(FlightRecordsOfAJob, AreWrittenByASurvivorBeforeMpirunKillsIt) {
  if (hydra_starts_ranks()) GTEST_SKIP() << kHydraKills;
  const auto ended = run_with_records("killed");
  EXPECT_EQ(ended.code, 137) << ended.output;
  EXPECT_THAT(inspected(), AllOf(HasSubstr("rank 0 on"), AnyOf(HasSubstr("SIGTERM"), HasSubstr(" is gone (")),
                                 HasSubstr("pending: "), HasSubstr("no record of ranks [1]")));
}

// Of the first job rank 1, a survivor, has left a record where the second job has none.
TEST_F(FlightRecordsOfAJob, AreNotReadBesideThoseOfAnEarlierJobInTheFolder) {
  if (hydra_starts_ranks()) GTEST_SKIP() << kHydraKills;
  for (const int ranks : {3, 2}) EXPECT_NE(run_with_records("killed", "", ranks).code, 0);
  EXPECT_THAT(inspected(), AllOf(HasSubstr("rank 0 on"), HasSubstr("no record of ranks [1]"),
                                 ContainsRegex("left out, of earlier jobs: [^ ]*kolo-flight.1.json\n")));
}

TEST_F(FlightRecordsOfAJob, AreWrittenOnSigusr2AndDoNotPartWhereAllIsWell) {
  const auto ended = run_with_records("asked_for_record");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(inspected(), AllOf(HasSubstr("rank 0 on"), HasSubstr("rank 1 on"), HasSubstr("SIGUSR2"),
                                 HasSubstr("the records do not part")));
}

TEST_F(FlightRecordsOfAJob, NameTheOperationThatARankStaysAwayFrom) {
  run_with_records("stall1", "KOLO_STALL_WARNING_S=1 KOLO_STALL_ABORT_S=2");
  EXPECT_THAT(inspected(), AllOf(HasSubstr("first divergence: "), HasSubstr("bucket 0 of the training step"),
                                 HasSubstr("on ranks [0], not entered on ranks [1]")));
}

// Row 43 of the collectives' worked examples.
TEST(Job, WarnsOfAnEagerOperationThatARankDoesNotComeToAndEndsIt) {
  const auto ended = run(2, "eager_stall", kShortLimits);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(ContainsRegex("stalled: allreduce g: waited 1.* s; ready on \\[0\\], missing on \\[1\\]"),
                    ContainsRegex("DeadlineExceeded: allreduce g.*missing on \\[1\\].*rank 0 of 2"),
                    ContainsRegex("DeadlineExceeded: allreduce g.*missing on \\[1\\].*rank 1 of 2")));
}

TEST(Job, EndsEagerOperationsThatNeedARankThatHasReturnedFromMain) {
  const auto ended = run(3, "eager_leave");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(ContainsRegex("Unavailable: rank 2 on .* is gone \\(exited\\): rank 0 of 3"),
                    ContainsRegex("Unavailable: rank 2 on .* is gone \\(exited\\): rank 1 of 3"),
                    Not(HasSubstr("no error"))));
}

TEST(Job, AbortsTheOwnPendingEagerOperationsAtShutdown) {
  const auto ended = run(2, "eager_shutdown");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("rank 1: kolo was shut down while p was pending"),
                                  HasSubstr("rank 1 on "), Not(HasSubstr("no error"))));
}

// Row 42.
TEST(Job, IsOverSoonAfterARankWasKilled) {
  const auto begin = std::chrono::steady_clock::now();
  const auto ended = run(4, "eager_kill");
  EXPECT_NE(ended.code, 0);
  EXPECT_THAT(ended.output, HasSubstr("rank 2"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));  // start-up included
}

// Each as soon as it knows, since mpirun ends it soon.
TEST(Job, WritesTheTimelineOfEachSurvivorOfAKilledRank) {
  if (hydra_starts_ranks()) GTEST_SKIP() << kHydraKills;
  const kolo::TemporaryDirectory folder;
  const auto ended =
      run(4, "eager_kill", fmt::format("KOLO_TIMELINE={0}/t.json KOLO_FLIGHT_DIR={0}", folder.path()));
  EXPECT_NE(ended.code, 0);
  for (const int rank : {0, 1, 3}) {
    const std::string events = read_file(fmt::format("{}/t.json.{}", folder.path(), rank));
    EXPECT_THAT(events, AllOf(HasSubstr("{\"traceEvents\":["), HasSubstr(fmt::format("rank {} on ", rank)),
                              HasSubstr("\"name\":\"x\""), HasSubstr("\"displayTimeUnit\"")))
        << "rank " << rank << ": " << ended.output;
  }
}

// One that catches the error and ends as if all were well.
TEST(Job, WritesTheTimelineOfASurvivorThatReturnsFromMain) {
  const kolo::TemporaryDirectory folder;
  run(2, "stall1",
      fmt::format("{0} KOLO_TIMELINE={1}/t.json KOLO_FLIGHT_DIR={1}", kShortLimits, folder.path()));
  EXPECT_THAT(read_file(fmt::format("{}/t.json.0", folder.path())), HasSubstr("bucket 0"));
  // Refused what it came to when all was over.
  EXPECT_THAT(read_file(fmt::format("{}/t.json.1", folder.path())),
              AllOf(HasSubstr("rank 1 on "), HasSubstr("\"displayTimeUnit\"")));
}

}  // namespace
