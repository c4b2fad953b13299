#include <kolo/core/base/requeue.h>

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

namespace kolo::detail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

RunProgram saying(const std::string& answer) {
  return [answer](const auto&) { return ProgramEnd{true, answer, ""}; };
}

BatchJob job_of(const std::string& system) { return {.system = system, .job = "46"}; }

TEST(Requeue, IsEachSystemsOwnCommand) {
  EXPECT_THAT(plan_requeue(job_of("Slurm"), saying("Requeue=1 BatchFlag=1")).command,
              ElementsAre("scontrol", "requeue", "46"));
  EXPECT_THAT(plan_requeue(job_of("LSF"), saying("")).command, ElementsAre("brequeue", "46"));
  EXPECT_THAT(plan_requeue(job_of("PBS"), saying("")).command, ElementsAre("qrerun", "46"));
}

TEST(Requeue, IsNotAskedForWhereTheJobCannotBeStartedAgain) {
  const auto why_not = [](const std::string& told) {
    return plan_requeue(job_of("Slurm"), saying(told)).why_not;
  };
  EXPECT_THAT(why_not("Requeue=0 BatchFlag=1"), HasSubstr("Requeue=0"));
  EXPECT_THAT(why_not("Requeue=1 BatchFlag=0"), HasSubstr("BatchFlag=0"));
  EXPECT_THAT(plan_requeue({}, saying("")).why_not, StartsWith("this is no batch job"));
  EXPECT_THAT(plan_requeue(job_of("Flux"), saying("")).why_not, HasSubstr("no command"));
}

// As Slurm 22.05 told of jobs whose processes had got SIGTERM.
TEST(Requeue, IsNotAskedForWhereTheJobWasCancelled) {
  const auto why_not = [](const std::string& told) {
    return plan_requeue(job_of("Slurm"), saying("Requeue=1 BatchFlag=1 " + told)).why_not;
  };
  const std::string end = "StartTime=2026-11-28T13:49:22 EndTime=2026-11-28T13:50:25";
  EXPECT_EQ(why_not("JobState=COMPLETING RunTime=00:01:03 TimeLimit=365-00:00:00 " + end),
            "it was cancelled");
  EXPECT_EQ(why_not("JobState=COMPLETING RunTime=00:01:03 TimeLimit=UNLIMITED " + end), "it was cancelled");
  EXPECT_EQ(why_not("JobState=CANCELLED"), "it was cancelled");
  // Its time is over, it was queued again by hand, or it got a signal alone.
  EXPECT_EQ(why_not("JobState=COMPLETING RunTime=00:01:03 TimeLimit=00:01:00 " + end), "");
  EXPECT_EQ(why_not("JobState=COMPLETING RunTime=1-00:00:00 TimeLimit=1-00:00:00 " + end), "");
  EXPECT_EQ(why_not("JobState=COMPLETING RunTime=00:00:00 TimeLimit=UNLIMITED EndTime=Unknown"), "");
  EXPECT_EQ(why_not("JobState=RUNNING RunTime=00:01:03 TimeLimit=365-00:00:00 EndTime=2027-11-28T13:49:27"),
            "");
}

// What is said and run, in this order.
struct Course {
  std::vector<std::string> steps;
  SayLine say = [this](const std::string& line) { steps.push_back(line); };
  RunProgram running(const ProgramEnd& end) {
    return [this, end](const std::vector<std::string>& command) {
      steps.push_back(fmt::format("{}", fmt::join(command, " ")));
      return end;
    };
  }
};

// Slurm ends the step at once, and with it srun, which carries the line.
TEST(Requeue, SaysWhatTheSystemDoesBeforeItIsAsked) {
  Course course;
  EXPECT_TRUE(ask_for_requeue(job_of("Slurm"), "kolo", {71, 400}, course.say,
                              course.running({true, "Requeue=1 BatchFlag=1", ""})));
  EXPECT_THAT(course.steps, ElementsAre("scontrol show job 46",
                                        "kolo: stopped at step 71 of 400; Slurm starts job 46 again",
                                        "scontrol requeue 46"));
}

TEST(Requeue, SaysWhatTheSystemSaidWhereItDoesNot) {
  Course course;
  EXPECT_FALSE(ask_for_requeue(job_of("PBS"), "kolorun", {}, course.say,
                               course.running({false, "", "qrerun:\nUnauthorized Request 46\n"})));
  EXPECT_THAT(course.steps, ElementsAre("kolorun: stopped; PBS starts job 46 again", "qrerun 46",
                                        "kolorun: PBS did not start the job again: Unauthorized Request 46"));
}

TEST(Requeue, NamesTheCommandThatFailsWithoutAWord) {
  Course course;
  EXPECT_FALSE(ask_for_requeue(job_of("LSF"), "kolo", {3}, course.say, course.running({false, "", "\n"})));
  EXPECT_EQ(course.steps.back(), "kolo: LSF did not start the job again: brequeue failed");
}

// A rank that waits in vain ends after two minutes; one that does not wait could end the job before Slurm
// does.
TEST(Requeue, IsNotKnownToHaveFailedWhereTheExitCodeIsLost) {
  Course course;
  EXPECT_TRUE(ask_for_requeue(job_of("LSF"), "kolo", {3}, course.say,
                              course.running({.err = "brequeue: lost", .is_code_lost = true})));
  EXPECT_EQ(course.steps.back(), "kolo: whether LSF does so is not known: brequeue: lost");
}

// Slurm ended scontrol with the job that it started again.
TEST(Requeue, IsNotKnownToHaveFailedWhereASignalHasEndedTheCommand) {
  Course course;
  EXPECT_TRUE(
      ask_for_requeue(job_of("Slurm"), "kolo", {3}, course.say,
                      course.running({.err = "signal 15 has ended scontrol", .is_ended_by_signal = true})));
  EXPECT_EQ(course.steps.back(), "kolo: whether Slurm does so is not known: signal 15 has ended scontrol");
}

TEST(Requeue, IsDoneWhereAnOperatorHasAskedBefore) {
  Course course;
  EXPECT_TRUE(ask_for_requeue(job_of("Slurm"), "kolo", {3}, course.say,
                              course.running({.err = "Job is pending execution for job 46\n"})));
  EXPECT_EQ(course.steps.back(), "scontrol requeue 46");
}

TEST(Requeue, SaysOneLineWhereNothingIsAsked) {
  Course course;
  EXPECT_FALSE(ask_for_requeue({}, "kolo", {3}, course.say, course.running({})));
  EXPECT_THAT(
      course.steps,
      ElementsAre("kolo: stopped at step 3; the system did not start the job again: this is no batch job"));
}

TEST(Requeue, IsNotAskedForWhereTheSystemDoesItByItself) {
  const auto said = [](const BatchJob& job) {
    Course course;
    EXPECT_FALSE(ask_for_requeue(job, "kolo", {3}, course.say, course.running({})));
    return fmt::format("{}", fmt::join(course.steps, " | "));
  };
  EXPECT_EQ(said(job_of("Grid Engine")),
            "kolo: stopped at step 3; Grid Engine starts it again where its script ends with exit code 99 "
            "(KOLO_STOPPED_EXIT_CODE)");
  EXPECT_EQ(said(job_of(kMpiOperator)),
            "kolo: stopped at step 3; the MPI operator starts it again where its restartPolicy is OnFailure");
  // A file of hosts that somebody has set by the operator's variable.
  EXPECT_EQ(said({.system = kMpiOperator}),
            "kolo: stopped at step 3; the system did not start the job again: this is no batch job");
}

TEST(Requeue, IsLeftToKolorunWhereThatHasStartedTheProgram) {
  unsetenv("KOLO_LAUNCHER");
  EXPECT_FALSE(wants_requeue());
  setenv("KOLO_REQUEUE", "1", 1);
  EXPECT_TRUE(wants_requeue());
  setenv("KOLO_LAUNCHER", "kolorun", 1);
  EXPECT_FALSE(wants_requeue());
  unsetenv("KOLO_LAUNCHER");
  unsetenv("KOLO_REQUEUE");
}

TEST(WaitToBeEnded, EndsWithTheCodeAtSigterm) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        alarm(1);
        signal(SIGALRM, [](int) { raise(SIGTERM); });
        wait_to_be_ended(75);
      },
      testing::ExitedWithCode(75), "");
}

}  // namespace
}  // namespace kolo::detail
