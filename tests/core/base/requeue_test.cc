#include <kolo/core/base/requeue.h>

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
  EXPECT_THAT(plan_requeue(job_of("Grid Engine"), saying("")).why_not, HasSubstr("exit code 99"));
  EXPECT_THAT(plan_requeue(job_of("Flux"), saying("")).why_not, HasSubstr("no command"));
}

TEST(Requeue, SaysWhatTheSystemDoes) {
  std::vector<std::vector<std::string>> commands;
  const RunProgram run = [&](const std::vector<std::string>& command) {
    commands.push_back(command);
    return ProgramEnd{true, "Requeue=1 BatchFlag=1", ""};
  };
  const RequeueAnswer answer = ask_for_requeue(job_of("Slurm"), "kolo", 71, run);
  EXPECT_TRUE(answer.starts_again);
  EXPECT_EQ(answer.line, "kolo: stopped at step 71; Slurm starts job 46 again");
  EXPECT_THAT(commands, ElementsAre(ElementsAre("scontrol", "show", "job", "46"),
                                    ElementsAre("scontrol", "requeue", "46")));
}

TEST(Requeue, SaysWhatTheSystemSaidWhereItDoesNot) {
  const RunProgram refuses = [](const auto&) {
    return ProgramEnd{false, "", "qrerun:\nUnauthorized Request 46\n"};
  };
  const RequeueAnswer answer = ask_for_requeue(job_of("PBS"), "kolorun", std::nullopt, refuses);
  EXPECT_FALSE(answer.starts_again);
  EXPECT_EQ(answer.line, "kolorun: stopped; PBS did not start the job again: Unauthorized Request 46");
  EXPECT_EQ(ask_for_requeue({}, "kolo", 3, refuses).line,
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
