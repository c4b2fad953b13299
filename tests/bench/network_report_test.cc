#include <bench/network/network_report.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <kolo/collectives/transport/topology.h>

namespace kolo::bench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kSent = 1'000'000;

NetworkLink link(const std::string& from, const std::string& to, const std::string& through) {
  NetworkLink made{from, to, {1e-5, 1e-9}, kSent, {}};
  if (!through.empty()) made.counted = {{through, kSent + 50'000}, {"lo", 1000}};
  return made;
}

NetworkReport two_hosts(const std::string& through, const std::vector<NetworkInterface>& interfaces,
                        const std::vector<RdmaDevice>& rdma = {}) {
  return {{{"a", 2, interfaces, rdma}, {"b", 2, interfaces, rdma}}, {link("a", "b", through)}, {}};
}

const RdmaDevice kMlx{"mlx5_0", "InfiniBand", "200 Gb/sec (4X HDR)"};

TEST(Transport, IsNamedAfterWhereTheBytesWereCounted) {
  const auto named = [](const NetworkReport& report) { return transport_of(report.between[0], report); };
  EXPECT_EQ(named(two_hosts("eth0", {{"eth0", 1000}})), "TCP over eth0");
  EXPECT_EQ(named(two_hosts("mlx5_0", {}, {kMlx})), "InfiniBand mlx5_0");
  EXPECT_EQ(named(two_hosts("roce0", {}, {{"roce0", "Ethernet", "100 Gb/sec"}})), "RoCE roce0");
  EXPECT_EQ(named(two_hosts("", {})), "a transport that no interface counts");
}

TEST(Transport, InsideAHostIsSharedMemoryWhereNoInterfaceCounts) {
  NetworkReport report = two_hosts("eth0", {});
  report.inside = {link("a", "a", ""), link("b", "b", "lo")};
  report.inside[1].counted["lo"] = kSent;
  EXPECT_EQ(transport_of(report.inside[0], report), "shared memory");
  EXPECT_EQ(transport_of(report.inside[1], report), "TCP over lo");
  EXPECT_THAT(network_warnings(report),
              ElementsAre(HasSubstr("ranks on b talk TCP over lo although they share memory")));
}

TEST(NetworkWarnings, AreNoneWhereTheFastestIsUsed) {
  EXPECT_THAT(network_warnings(two_hosts("eth1", {{"eth0", 1000}, {"eth1", 10000}})), IsEmpty());
  EXPECT_THAT(network_warnings(two_hosts("mlx5_0", {{"eth0", 1000}}, {kMlx})), IsEmpty());
  EXPECT_THAT(network_warnings(two_hosts("eth0", {{"eth0", 0}, {"eth1", 10000}})),
              IsEmpty());  // does not tell
}

TEST(NetworkWarnings, NameAFasterInterfaceThatBothHostsHave) {
  EXPECT_THAT(
      network_warnings(two_hosts("eth0", {{"eth0", 1000}, {"eth1", 25000}})),
      ElementsAre(AllOf(HasSubstr("a and b talk TCP over eth0 although eth1 (25 Gbit/s) is up on both"),
                        HasSubstr("btl_tcp_if_include eth1"))));
  NetworkReport report = two_hosts("eth0", {{"eth0", 1000}, {"eth1", 25000}});
  report.hosts[1].interfaces.pop_back();
  EXPECT_THAT(network_warnings(report), IsEmpty());
}

TEST(NetworkWarnings, NameAnActiveRdmaDevice) {
  EXPECT_THAT(network_warnings(two_hosts("ib0", {{"ib0", 200000}}, {kMlx})),
              ElementsAre(HasSubstr("although mlx5_0 (InfiniBand, 200 Gb/sec (4X HDR)) is active")));
}

// Two ranks exchange halves, 5e8 bytes at 1 GB/s, twice, and each sums what it has got.
TEST(Scaling, FollowsFromTheSlowestLinkOfEachKind) {
  NetworkReport report = two_hosts("eth0", {});
  for (NetworkHost& host : report.hosts) host.ranks = 1;
  report.seconds_per_reduced_byte = 1e-10;
  const Scaling between = expected_scaling(report, {1'000'000'000, 1000});
  EXPECT_NEAR(between.reduce_ms, 1000.02 + 50, 1e-6);
  EXPECT_NEAR(between.plain_efficiency, 1000 / 2050.02, 1e-6);
  EXPECT_NEAR(between.hidden_efficiency, 1000 / 1050.02, 1e-6);
  NetworkReport host{{{"a", 2, {}, {}}}, {}, {link("a", "a", ""), link("a", "a", "")}, 1e-10};
  host.inside[0].cost = {1e-6, 1e-10};
  EXPECT_NEAR(expected_scaling(host, {1'000'000'000, 1000}).reduce_ms, 1050.02, 1e-6);
}

TEST(Scaling, IsThatOfTheAlgorithmThatTheCostsChoose) {
  NetworkReport report = two_hosts("eth0", {});
  report.inside = {link("a", "a", ""), link("b", "b", "")};
  for (NetworkLink& inside : report.inside) inside.cost = {1e-6, 1e-11};
  const Scaling scaling = expected_scaling(report, {.gradient_bytes = 1 << 28, .step_ms = 1});
  CostModel costs{.inside = {1e-6, 1e-11}, .between = {1e-5, 1e-9}};
  const std::vector<int> leaders = {0, 0, 2, 2};
  EXPECT_EQ(scaling.algorithm, fastest_allreduce(costs, Topology(leaders), 1 << 28));
  EXPECT_EQ(scaling.algorithm, "hierarchical");
}

TEST(Scaling, OfOneRankIsWhole) {
  const NetworkReport report{{{"a", 1, {}, {}}}, {}, {}};
  EXPECT_EQ(expected_scaling(report, {}).plain_efficiency, 1);
}

TEST(NetworkReport, IsGatheredFromWhatEachHostTells) {
  const NetworkHost a{"a", 2, {{"eth0", 1000}}, {}}, b{"b", 1, {}, {{"m", "InfiniBand", "r"}}};
  const NetworkLink between{"a", "b", {4.05e-5, 8e-9}, 100, {{"eth0", 100}}},
      inside{"a", "a", {5e-7, 2e-10}, 100, {}};
  NetworkReport report;
  add_host(report, host_text(a, {between, inside}));
  add_host(report, host_text(b, {}));
  ASSERT_EQ(report.hosts.size(), 2u);
  EXPECT_EQ(report.hosts[0].interfaces.at(0).mbit_per_s, 1000);
  EXPECT_EQ(report.hosts[1].rdma.at(0).name, "m");
  const auto json = nlohmann::json::parse(network_json(report, {}));
  EXPECT_EQ(json["between"][0]["transport"], "TCP over eth0");
  EXPECT_DOUBLE_EQ(json["between"][0]["GBps"], 0.125);
  EXPECT_DOUBLE_EQ(json["between"][0]["latency_us"], 40.5);
  EXPECT_EQ(json["inside"][0]["transport"], "shared memory");
  EXPECT_EQ(json["gradient_bytes"], 102228128);
}

}  // namespace
}  // namespace kolo::bench
