#include <kolo/launcher/check_network.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kolo::launcher {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kReport[] =
    R"({"event":"network","hosts":[],"between":[{"from":"a","to":"b","transport":"TCP over eth0","GBps":0.125,)"
    R"("latency_us":40.5}],"inside":[{"from":"a","to":"a","transport":"shared memory","GBps":5,"latency_us":0.5}],)"
    R"("gradient_bytes":1048576,"step_ms":100,"algorithm":"ring","reduce_ms":8.68,"efficiency":0.92,)"
    R"("efficiency_overlapped":1,"warnings":["too slow"]})";

TEST(NetworkLines, TellLinksScalingAndWarnings) {
  EXPECT_THAT(network_lines(kReport),
              ElementsAre("a - b: TCP over eth0, 0.125 GB/s in each direction, 40.5 us",
                          "on a: shared memory, 5 GB/s in each direction, 0.5 us",
                          AllOf(HasSubstr("1.0 MiB of gradients are reduced in 8.68 ms"),
                                HasSubstr("scale with 92 %, with 100 %")),
                          "warning: too slow"));
}

TEST(NetworkLines, OfOneRankSaySo) {
  EXPECT_THAT(network_lines(R"({"between":[],"inside":[],"warnings":[]})"),
              ElementsAre("one rank: there is no network to measure"));
}

TEST(NetworkReport, IsFoundAmongOtherLines) {
  EXPECT_EQ(find_report(std::string("a note of MPI\n{}\n") + kReport + "\n"), kReport);
  EXPECT_EQ(find_report("nothing\n"), "");
}

}  // namespace
}  // namespace kolo::launcher
