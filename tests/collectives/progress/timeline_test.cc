#include <kolo/collectives/progress/timeline.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <kolo/collectives/progress/clock_offset.h>

#include "tests/collectives/algorithms/simulated_network.h"

namespace kolo {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

Json events_of(const Timeline& timeline) {
  return Json::parse(fmt::format("[{}]", timeline.events_json(2, "node7")));
}

TEST(Timeline, DrawsEventsInMicrosecondsSinceItsOrigin) {
  const auto origin = Timeline::Clock::now();
  Timeline timeline("t.json", origin);
  timeline.add({.name = "g",
                .category = "allreduce",
                .lane = "channel 1",
                .start = origin + 3ms,
                .end = origin + 5ms,
                .bytes = 12});
  const Json events = events_of(timeline);
  const Json& drawn = events.back();
  EXPECT_EQ(drawn["ph"], "X");
  EXPECT_DOUBLE_EQ(drawn["ts"], 3000);
  EXPECT_DOUBLE_EQ(drawn["dur"], 2000);
  EXPECT_EQ(drawn["pid"], 2);
  EXPECT_EQ(drawn["args"]["bytes"], 12);
}

TEST(Timeline, NamesItsRankAndEachLaneOnce) {
  Timeline timeline("t.json", Timeline::Clock::now());
  for (const char* lane : {"a", "b", "a"}) timeline.add({.name = "g", .category = "queue", .lane = lane});
  int lanes = 0;
  std::string process;
  for (const auto& event : events_of(timeline)) {
    if (event["name"] == "thread_name") ++lanes;
    if (event["name"] == "process_name") process = event["args"]["name"];
  }
  EXPECT_EQ(lanes, 2);
  EXPECT_EQ(process, "rank 2 on node7");
}

TEST(ClockOffset, IsNearlyNothingWhereAllRanksHaveOneClock) {
  SimulatedNetwork network(5, 3);
  std::vector<std::shared_ptr<Collective>> operations;
  for (int rank = 0; rank < network.size(); ++rank)
    operations.push_back(std::make_shared<detail::ClockOffset>(network.end(rank)));
  network.run(operations);
  for (const auto& operation : operations)
    EXPECT_LT(std::abs(static_cast<detail::ClockOffset&>(*operation).offset().count()), 50'000'000);
  EXPECT_EQ(network.messages(), 4 * (2 * detail::ClockOffset::kRounds + 1));
}

}  // namespace
}  // namespace kolo
