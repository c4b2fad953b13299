#include <kolo/collectives/algorithms/device_collectives.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

DevicePlace place(const std::string& host, const std::string& gpu, const std::string& slot) {
  return {.host = host, .gpu = gpu, .slot = slot, .version = "2.28.9", .why_not = ""};
}

TEST(WhyNotTogether, SaysNothingWhereEachRankHasItsOwnGpu) {
  const std::vector<DevicePlace> places = {place("a", "GPU-1", "0000:3b:00.0"),
                                           place("a", "GPU-2", "0000:5e:00.0"),
                                           place("b", "GPU-3", "0000:3b:00.0")};
  EXPECT_EQ(why_not_together("NCCL", places), "");
}

TEST(WhyNotTogether, NamesBothRanksOfOneGpu) {
  const std::vector<DevicePlace> places = {place("a", "GPU-1", "0000:3b:00.0"),
                                           place("a", "GPU-2", "0000:5e:00.0"),
                                           place("a", "GPU-2", "0000:5e:00.0")};
  EXPECT_THAT(why_not_together("NCCL", places),
              AllOf(HasSubstr("ranks 1 and 2 on a"), HasSubstr("GPU-2"), HasSubstr("0000:5e:00.0")));
}

TEST(WhyNotTogether, TakesSlicesOfOneGpuForTheSame) {
  const std::vector<DevicePlace> places = {place("a", "MIG-1", "0000:3b:00.0"),
                                           place("a", "MIG-2", "0000:3b:00.0")};
  EXPECT_THAT(why_not_together("NCCL", places), HasSubstr("ranks 0 and 1"));
}

TEST(WhyNotTogether, KnowsAGpuThatTwoContainersShare) {
  const std::vector<DevicePlace> places = {place("a", "GPU-1", "0000:3b:00.0"),
                                           place("b", "GPU-1", "0000:3b:00.0")};
  EXPECT_THAT(why_not_together("NCCL", places), HasSubstr("ranks 0 and 1"));
}

TEST(WhyNotTogether, SaysWhichRankLacksTheLibrary) {
  std::vector<DevicePlace> places = {place("a", "GPU-1", "0000:3b:00.0"), {}};
  places[1] = {.host = "b", .gpu = "", .slot = "", .version = "", .why_not = "libnccl.so.2 does not open"};
  EXPECT_EQ(why_not_together("NCCL", places), "rank 1 on b: libnccl.so.2 does not open");
}

TEST(WhyNotTogether, RefusesTwoVersions) {
  std::vector<DevicePlace> places = {place("a", "GPU-1", "0000:3b:00.0"),
                                     place("b", "GPU-2", "0000:3b:00.0")};
  places[1].version = "2.27.3";
  EXPECT_THAT([&] { why_not_together("NCCL", places); },
              ThrowsMessage<FailedPreconditionError>(
                  AllOf(HasSubstr("2.28.9 on rank 0 (a)"), HasSubstr("2.27.3 on rank 1 (b)"))));
}

}  // namespace
}  // namespace kolo
