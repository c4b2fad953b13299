#include <kolo/launcher/child.h>

#include <gmock/gmock.h>
#include <unistd.h>

namespace kolo::launcher {
namespace {

TEST(ContentsOf, AFileOfProcIsItsText) {
  EXPECT_THAT(contents_of("/proc/self/stat"), testing::StartsWith(std::to_string(getpid()) + " ("));
}

// A folder can be opened as a file of /proc can whose process then goes: reading is an error in both.
TEST(ContentsOf, WhatCannotBeReadIsEmpty) {
  EXPECT_EQ(contents_of("/proc/self"), "");
  EXPECT_EQ(contents_of("/proc/self/nothing"), "");
}

TEST(RunCaptured, EndsAProgramThatDoesNotEndOrPrintsTooMuchAndSaysSo) {
  using std::chrono::seconds;
  const auto why = [](const std::string& script, int limit_s) {
    const CapturedRun run = run_captured({"sh", "-c", script}, seconds(limit_s), nullptr);
    EXPECT_FALSE(run.good);
    EXPECT_LT(run.out.size(), size_t{17} << 20);
    return run.why;
  };
  EXPECT_EQ(why("exit 3", 60), "it failed");
  EXPECT_EQ(why("exec sleep 60", 1), "it did not end within 1 s");
  EXPECT_EQ(why("exec yes", 60), "it printed over 16 MiB");
}

}  // namespace
}  // namespace kolo::launcher
