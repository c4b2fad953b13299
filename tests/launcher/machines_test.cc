#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/launcher/machines.h>

namespace kolo::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Machines, OfHostsWithOneBootIdAreOne) {
  EXPECT_THAT(number_machines("[1,2]<stdout>:aaaa\n[1,0]<stdout>:aaaa\n[1,1]<stdout>:bbbb\n", 3),
              ElementsAre(0, 1, 0));
}

TEST(Machines, AreUnknownWhenAHostSaysNothing) {
  EXPECT_THAT(number_machines("[1,0]<stdout>:aaaa\n", 2), IsEmpty());
  EXPECT_THAT(number_machines("", 2), IsEmpty());
}

}  // namespace
}  // namespace kolo::launcher
