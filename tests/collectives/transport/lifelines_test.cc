// A ring in one process: each place has its end of the connections.
#include <kolo/collectives/transport/lifelines.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;

class LifelinesTest : public testing::Test {
 protected:
  void join(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) ring.push_back(std::make_unique<Lifelines>());
    {
      std::vector<std::jthread> joining;
      for (int rank = 0; rank < ranks; ++rank)
        joining.emplace_back(
            [this, rank, ranks] { ring[rank]->join(ring[(rank + 1) % ranks]->address(), 10s); });
    }
    agree();
  }

  void agree() {
    std::vector<Lifelines::Held> held;
    for (const auto& place : ring) held.push_back(place->held());
    for (std::size_t rank = 0; rank < ring.size(); ++rank)
      ring[rank]->agree({.left = held[(rank + ring.size() - 1) % ring.size()].right,
                         .right = held[(rank + 1) % ring.size()].left});
  }

  // "l" and "r" for those that are found to be lost, "h" for their host; looks until something is, for a
  // while.
  std::string lost(int rank, std::chrono::milliseconds within = 5s) {
    const auto end = std::chrono::steady_clock::now() + within;
    std::string found;
    while (found.empty() && std::chrono::steady_clock::now() < end) {
      const auto now = ring[rank]->look();
      found = std::string(now.left ? "l" : "") + (now.right ? "r" : "") + (now.with_host ? "h" : "");
      std::this_thread::sleep_for(1ms);
    }
    return found;
  }

  std::vector<std::unique_ptr<Lifelines>> ring;
};

TEST_F(LifelinesTest, TellBothNeighboursWhoIsGone) {
  join(4);
  ring[2].reset();
  EXPECT_EQ(lost(1), "r");
  EXPECT_EQ(lost(3), "l");
  EXPECT_EQ(lost(0, 50ms), "");
}

TEST_F(LifelinesTest, TellItOnce) {
  join(3);
  ring[2].reset();
  EXPECT_EQ(lost(1), "r");
  EXPECT_EQ(lost(1, 50ms), "");
}

TEST_F(LifelinesTest, SayNothingOfOneThatSaidGoodbye) {
  join(3);
  ring[2]->say_goodbye();
  EXPECT_EQ(lost(1, 20ms), "");
  ring[2].reset();
  EXPECT_EQ(lost(1, 50ms), "");
  EXPECT_EQ(lost(0, 50ms), "");
}

TEST_F(LifelinesTest, WatchTheOthersAfterTheOwnGoodbye) {
  join(3);
  ring[0]->say_goodbye();
  EXPECT_EQ(lost(1, 20ms), "");
  ring[1].reset();
  EXPECT_EQ(lost(0), "r");
}

TEST_F(LifelinesTest, OfTwoAreBothNeighboursOfEachOther) {
  join(2);
  ring[1].reset();
  const std::string first = lost(0);
  EXPECT_THAT(first + (first == "lr" ? "" : lost(0)), testing::UnorderedElementsAre('l', 'r'));
}

// The system takes the call of the first one, which has hung up when the second one looks.
TEST_F(LifelinesTest, OfOneThatCameTooLateNobodyIsLost) {
  for (int rank = 0; rank < 2; ++rank) ring.push_back(std::make_unique<Lifelines>());
  ring[0]->join(ring[1]->address(), 50ms);
  ring[1]->join(ring[0]->address(), 50ms);
  EXPECT_TRUE(ring[1]->held().left);
  agree();
  EXPECT_EQ(lost(1, 50ms), "");
  EXPECT_EQ(lost(0, 20ms), "");
  EXPECT_FALSE(ring[1]->held().left);
}

TEST_F(LifelinesTest, GoWithoutANeighbourThatCannotBeReached) {
  Lifelines alone;
  alone.join({}, 1ms);
  EXPECT_FALSE(alone.look().left);
  EXPECT_FALSE(alone.look().right);
}

}  // namespace
}  // namespace kolo::detail
