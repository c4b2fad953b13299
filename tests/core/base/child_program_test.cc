#include <kolo/core/base/child_program.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace kolo::detail
