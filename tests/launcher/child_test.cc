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

}  // namespace
}  // namespace kolo::launcher
