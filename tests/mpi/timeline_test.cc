// A timeline of all ranks in one file, started and stopped while the program runs.
#include <kolo/collectives/progress/timeline.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/runtime/group.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using Json = nlohmann::json;

class TimelineOfRanks : public testing::Test {
 protected:
  TimelineOfRanks() : path_(world_group().broadcast(folder_ / "timeline.json", 0)) {}
  Json events() {
    std::ifstream file(path_);
    return Json::parse(file)["traceEvents"];
  }
  TemporaryDirectory folder_;
  std::string path_;
};

TEST_F(TimelineOfRanks, HoldsTheOperationsOfEachRankBetweenStartAndStop) {
  world_group().allgather("before");
  start_timeline(path_);
  world_group().allgather("within");
  stop_timeline();
  world_group().allgather("after");
  if (rank() == 0) {
    std::map<int, int> exchanges;  // by rank
    for (const auto& event : events()) {
      if (event["ph"] != "X") continue;
      EXPECT_GE(event["ts"].get<double>(), -1e6);
      if (event["cat"] == "exchange" && event["name"] == "an exchange between all ranks")
        ++exchanges[event["pid"].get<int>()];
    }
    ASSERT_EQ(static_cast<int>(exchanges.size()), size());
    for (const auto& [rank, count] : exchanges) EXPECT_EQ(count, 1) << "rank " << rank;
  }
  world_group().allgather("read");
}

TEST_F(TimelineOfRanks, IsRefusedWhileAnotherIsRecorded) {
  start_timeline(path_);
  EXPECT_THROW(start_timeline(path_), FailedPreconditionError);
  stop_timeline();
  EXPECT_NO_THROW(stop_timeline());
}

}  // namespace
}  // namespace kolo
