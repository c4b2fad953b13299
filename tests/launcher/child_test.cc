#include <kolo/launcher/child.h>

#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "tests/launcher/ends_soon.h"

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

// A script's children stay in its process group, and may hold what it writes to.
TEST(RunCaptured, EndsWithAProgramWhatThatHasStarted) {
  const CapturedRun run =
      run_captured({"sh", "-c", "sleep 60 & echo $!; wait"}, std::chrono::seconds(1), nullptr);
  EXPECT_FALSE(run.good);
  EXPECT_TRUE(ends_soon(std::stoi(run.out)));
}

TEST(AgeOf, IsTheTimeSinceAProcessWasStarted) {
  using namespace std::chrono_literals;
  const auto before = age_of(getpid());
  poll(nullptr, 0, 50);
  const auto passed = age_of(getpid()) - before;
  EXPECT_GE(before, 0ms);
  EXPECT_LT(before, 10min);
  EXPECT_GE(passed, 40ms) << "a tick is 10 ms";
  EXPECT_GT(age_of(1), before) << "the first process of all";
  EXPECT_EQ(age_of(-1), std::chrono::milliseconds::max());
}

}  // namespace
}  // namespace kolo::launcher
