#include <kolo/launcher/network_report.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>

namespace kolo::launcher {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kSent = 1'000'000;

NetworkLink link(const std::string& from, const std::string& to, const std::string& through) {
  NetworkLink made{from, to, 10, 1e9, kSent, {}};
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

// 2(n−1)/n · bytes ÷ bandwidth + 2(n−1) · latency: 1e9 bytes over 2 hosts at 1 GB/s and 10 µs.
TEST(Scaling, FollowsFromTheSlowestLinkOfEachKind) {
  NetworkReport report = two_hosts("eth0", {});
  const Scaling between = expected_scaling(report, {1'000'000'000, 1000});
  EXPECT_NEAR(between.reduce_ms, 1000.02, 1e-6);
  EXPECT_NEAR(between.plain_efficiency, 0.5, 1e-4);
  EXPECT_NEAR(between.hidden_efficiency, 1, 1e-4);
  report.inside = {link("a", "a", ""), link("b", "b", "")};
  report.inside[0].bytes_per_s = 4e9;
  report.inside[1].bytes_per_s = 8e9;
  EXPECT_NEAR(expected_scaling(report, {1'000'000'000, 1000}).reduce_ms, 1000.02 + 250.02, 1e-6);
}

TEST(Scaling, OfOneRankIsWhole) {
  const NetworkReport report{{{"a", 1, {}, {}}}, {}, {}};
  EXPECT_EQ(expected_scaling(report, {}).plain_efficiency, 1);
  EXPECT_THAT(network_lines(report, {}), ElementsAre("one rank: there is no network to measure"));
}

constexpr char kLines[] =
    "a note of MPI\n"
    R"({"host":"a","ranks":2,"interfaces":[{"name":"eth0","mbit_per_s":1000}],"rdma":[],"links":[)"
    R"({"to":"b","latency_us":40.5,"bytes_per_s":1.25e8,"sent":100,"counted":{"eth0":100}},)"
    R"({"to":"a","latency_us":0.5,"bytes_per_s":5e9,"sent":100,"counted":{}}]})"
    "\n"
    R"({"host":"b","ranks":1,"interfaces":[],"rdma":[{"name":"m","link_layer":"InfiniBand","rate":"r"}],"links":[]})";

TEST(NetworkReportLines, AreReadAndTold) {
  const NetworkReport report = parse_network_report(kLines);
  ASSERT_EQ(report.hosts.size(), 2u);
  EXPECT_EQ(report.hosts[1].rdma.at(0).name, "m");
  EXPECT_THAT(network_lines(report, {.gradient_bytes = 1 << 20, .step_ms = 100}),
              ElementsAre("a - b: TCP over eth0, 0.125 GB/s in each direction, 40.5 us",
                          "on a: shared memory, 5 GB/s in each direction, 0.5 us",
                          AllOf(HasSubstr("1.0 MiB of gradients are reduced in 8.68 ms"),
                                HasSubstr("scale with 92 %"))));
  const auto json = nlohmann::json::parse(network_json(report, {}));
  EXPECT_EQ(json["between"][0]["transport"], "TCP over eth0");
  EXPECT_EQ(json["between"][0]["GBps"], 0.125);
  EXPECT_EQ(json["gradient_bytes"], 102228128);
}

TEST(NetworkReportLines, WithoutAMeasurementAreAnError) {
  EXPECT_THROW(parse_network_report("nothing\n"), DataLossError);
}

}  // namespace
}  // namespace kolo::launcher
