#include <kolo/core/training/checkpoint_files.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kolo::detail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Clock = CheckpointList::Clock;

constexpr Clock::time_point at(int minutes) { return Clock::time_point(std::chrono::minutes(minutes)); }

TEST(CheckpointList, KeepsOneForEverEveryNHours) {
  CheckpointList list({.max_to_keep = 1, .keep_every_n_hours = 1}, at(0));
  EXPECT_THAT(list.add("a", at(10)), IsEmpty());
  EXPECT_THAT(list.add("b", at(70)), ElementsAre("a"));
  EXPECT_THAT(list.add("c", at(80)), IsEmpty());  // b is more than an hour after the start: it stays
  EXPECT_THAT(list.paths(), ElementsAre("c"));
  EXPECT_THAT(list.add("d", at(110)), ElementsAre("c"));  // the next one stays after two hours
  EXPECT_THAT(list.add("e", at(130)), ElementsAre("d"));
  EXPECT_THAT(list.add("f", at(140)), IsEmpty());
}

TEST(CheckpointList, MovesAPathThatIsSavedAgainToTheEnd) {
  CheckpointList list({.max_to_keep = 2});
  list.add("a");
  list.add("b");
  EXPECT_THAT(list.add("a"), IsEmpty());
  EXPECT_THAT(list.add("c"), ElementsAre("b"));
}

}  // namespace
}  // namespace kolo::detail
