#include <kolo/launcher/host_watch.h>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/launcher/ends_soon.h"

namespace kolo::launcher {
namespace {

// Else a host that answers would be taken for one that is not listed any more.
TEST(HostWatch, HasTheWholeListHoweverFewAnswersAreWaitedFor) {
  constexpr int kHosts = 250, kNobodysPort = 1;
  WatchPlan plan;
  std::vector<std::string> without;
  for (int i = 0; i < kHosts; ++i) {
    plan.listed.push_back({fmt::format("node{}", i), 2});
    plan.agent.daemons[plan.listed.back().name] = {"127.0.0.1", kNobodysPort};
    if (i + 1 < kHosts) without.push_back(plan.listed.back().name);
  }
  plan.agent.port = kNobodysPort;
  HostWatch watch(plan);
  for (int look = 0; look < 20; ++look) {
    ASSERT_TRUE(watch.look_now(without, std::chrono::seconds(20)));
    ASSERT_EQ(watch.list().size(), plan.listed.size()) << "look " << look;
    EXPECT_EQ(watch.list().back().why_not, "Connection refused");
  }
}

TEST(HostWatch, EndsAScriptThatHangsWithWhatItHasStarted) {
  const std::string file = testing::TempDir() + "/started_by_discovery_" + std::to_string(getpid());
  WatchPlan plan;
  plan.listed = {{"localhost", 1}};
  plan.agent.daemons["localhost"] = {"127.0.0.1", 1};
  plan.discover = "sleep 60 & echo $! > " + file + "; wait";
  plan.discover_limit = std::chrono::seconds(1);
  HostWatch watch(plan);
  ASSERT_TRUE(watch.look_now({}, std::chrono::seconds(20)));
  EXPECT_THAT(watch.take_warnings(), testing::ElementsAre(testing::HasSubstr("it did not end within 1 s")));
  EXPECT_TRUE(ends_soon(std::stoi(contents_of(file))));
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace kolo::launcher
