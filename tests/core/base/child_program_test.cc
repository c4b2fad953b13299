#include <kolo/core/base/child_program.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(ChildProgram, TellsWhatItHasWritten) {
  const ProgramEnd end = run_program({"sh", "-c", "echo a; echo b >&2; cat; echo c"}, 10s);
  EXPECT_TRUE(end.good);
  EXPECT_EQ(end.out, "a\nc\n");
  EXPECT_EQ(end.err, "b\n");
}

TEST(ChildProgram, HasFailedWithAnyOtherCodeThanZero) {
  EXPECT_FALSE(run_program({"sh", "-c", "exit 3"}, 10s).good);
  EXPECT_FALSE(run_program({"sh", "-c", "kill -9 $$"}, 10s).good);
}

// OpenPBS's qrerun ends with 159 where it may not do what it is asked.
TEST(ChildProgram, IsNotEndedByASignalWhereItChoseALargeCode) {
  const ProgramEnd refusing = run_program({"sh", "-c", "echo no >&2; exit 159"}, 10s);
  EXPECT_FALSE(refusing.is_ended_by_signal);
  EXPECT_EQ(refusing.err, "no\n");
  const ProgramEnd killed = run_program({"sh", "-c", "kill -9 $$"}, 10s);
  EXPECT_TRUE(killed.is_ended_by_signal);
  EXPECT_EQ(killed.err, "signal 9 has ended sh");
}

TEST(ChildProgram, IsEndedWithItsOwnChildrenWhenItsTimeIsOver) {
  const auto begin = std::chrono::steady_clock::now();
  const ProgramEnd end = run_program({"sh", "-c", "echo a; sleep 60 & wait"}, 300ms);
  EXPECT_FALSE(end.good);
  EXPECT_EQ(end.out, "a\n");
  EXPECT_THAT(end.err, HasSubstr("sh did not end within 0.3 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

TEST(ChildProgram, IsNamedWhereItIsNotThere) {
  const ProgramEnd end = run_program({"kolo-no-such-program"}, 10s);
  EXPECT_FALSE(end.good);
  EXPECT_THAT(end.err, HasSubstr("cannot start kolo-no-such-program: No such file"));
}

// A program that ignores SIGCHLD, or was started so: the system then forgets how its children have ended.
class IgnoringChildren : public testing::Test {
 protected:
  IgnoringChildren() { signal(SIGCHLD, SIG_IGN); }
  ~IgnoringChildren() override { signal(SIGCHLD, SIG_DFL); }
};

TEST_F(IgnoringChildren, TakesNoLostCodeForSuccess) {
  for (const char* code : {"3", "0"}) {
    const ProgramEnd end = run_program({"sh", "-c", std::string("echo a; exit ") + code}, 10s);
    EXPECT_FALSE(end.good) << code;
    EXPECT_EQ(end.out, "a\n");
    EXPECT_EQ(end.err, "sh: its exit code is lost, as this program ignores SIGCHLD");
  }
}

TEST(CodeOfChild, IsToldOnceAndThenLost) {
  const pid_t pid = spawn_program({"sh", "-c", "exit 3"});
  EXPECT_EQ(code_of_child(pid, true), 3);
  EXPECT_EQ(code_of_child(pid, true), kLostCode);
}

TEST(CodeOfChild, IsNoneWhileItRuns) {
  const pid_t pid = spawn_program({"sleep", "60"});
  EXPECT_EQ(code_of_child(pid), std::nullopt);
  kill(pid, SIGKILL);
  EXPECT_EQ(code_of_child(pid, true), 128 + SIGKILL);
}

}  // namespace
}  // namespace kolo::detail
