#include <kolo/core/base/looks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kolo {
namespace {

using namespace std::chrono_literals;

int pauses(Looks& looks) {
  int count = 0;
  while (looks.go_on()) ++count;
  return count;
}

TEST(Looks, AreAsManyAsWereAskedFor) {
  Looks looks(5, 0);
  EXPECT_EQ(pauses(looks), 5);
  EXPECT_FALSE(looks.go_on());
  looks.begin_again();
  EXPECT_EQ(pauses(looks), 5);
}

// The first offer is made in any case. All that follow may come too late on a busy machine.
TEST(Looks, AreFollowedByOffers) {
  Looks looks(5, 3);
  EXPECT_THAT(pauses(looks), testing::AllOf(testing::Ge(6), testing::Le(8)));
}

TEST(Looks, EndAfterMillisecondsOfOffers) {
  Looks looks(5, 1'000'000'000);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(looks.go_on());
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(looks.go_on());
}

TEST(Looks, AtOnceAreNotTimed) {
  Looks looks(5, 0);
  ASSERT_TRUE(looks.go_on());
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(pauses(looks), 4);
}

}  // namespace
}  // namespace kolo
