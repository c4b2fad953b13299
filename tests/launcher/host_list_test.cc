#include <kolo/launcher/host_list.h>

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>

#include <kolo/launcher/child.h>

namespace kolo::launcher {
namespace {

Options job(Launcher launcher, int hosts, int ranks) {
  Options options;
  options.launcher = launcher;
  for (int i = 1; i <= hosts; ++i) options.hosts.push_back({fmt::format("n{}", i), 2});
  options.ranks = ranks;
  return options;
}

// What a child reads there.
std::string lines(Launcher launcher, int ranks = 200) {
  const auto list = HostList::of(job(launcher, 100, ranks), {});
  return list ? run_captured({"cat", list->path()}, std::chrono::seconds(10), nullptr).out : "";
}

TEST(HostList, HasALineForEachHost) {
  const std::string of_mpirun = lines(Launcher::mpirun), of_hydra = lines(Launcher::hydra);
  EXPECT_THAT(of_mpirun, testing::StartsWith("n1 slots=2\nn2 slots=2\n"));
  EXPECT_THAT(of_mpirun, testing::EndsWith("\nn100 slots=2\n"));
  EXPECT_THAT(of_hydra, testing::StartsWith("n1:2\nn2:2\n"));
  EXPECT_EQ(std::count(of_hydra.begin(), of_hydra.end(), '\n'), 100);
}

TEST(HostList, HasALineForEachRankOfSrun) {
  const std::string found = lines(Launcher::srun, 199);
  EXPECT_THAT(found, testing::StartsWith("n1\nn1\nn2\nn2\n"));
  EXPECT_THAT(found, testing::EndsWith("\nn99\nn99\nn100\n"));
}

TEST(HostList, IsForManyHostsThatAreInNoFileOfTheUsers) {
  EXPECT_FALSE(HostList::of(job(Launcher::srun, 32, 64), {}));
  Options named = job(Launcher::mpirun, 33, 66);
  EXPECT_TRUE(HostList::of(named, {}));
  named.hostfile = "hosts";
  EXPECT_FALSE(HostList::of(named, {}));
}

}  // namespace
}  // namespace kolo::launcher
