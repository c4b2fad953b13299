#include <kolo/launcher/host_watch.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

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

}  // namespace
}  // namespace kolo::launcher
