#include <kolo/core/device/gpu_platform.h>

#include <gmock/gmock.h>

#include <string>

#include <kolo/core/base/error.h>
#include <tests/core/device/fake_gpus.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::EnvironmentVariable;
using testing::FakeGpus;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

// Row 31 of the worked examples.
TEST(VisibleDeviceList, GivesPositionsInItsOrder) {
  EXPECT_THAT(parse_visible_device_list("5,3", 8), ElementsAre(5, 3));
  EXPECT_THAT(parse_visible_device_list("0", 1), ElementsAre(0));
}

TEST(VisibleDeviceList, MayHaveSpacesAroundItsNumbers) {
  EXPECT_THAT(parse_visible_device_list("2, 3", 8), ElementsAre(2, 3));
  EXPECT_THAT(parse_visible_device_list(" 2 ,\t3 ", 8), ElementsAre(2, 3));
  for (const char* list : {"2 3", "2,,3", " "})
    EXPECT_THROW(parse_visible_device_list(list, 8), InvalidArgumentError) << list;
}

TEST(VisibleDeviceList, OfNothingIsAll) {
  EXPECT_THAT(parse_visible_device_list("", 3), ElementsAre(0, 1, 2));
}

// Row 32 of the worked examples.
TEST(VisibleDeviceList, RefusesWhatIsNoNumber) {
  EXPECT_THAT([] { parse_visible_device_list("0,abc", 8); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Could not parse entry in 'visible_device_list': 'abc'")));
}

TEST(VisibleDeviceList, RefusesAGpuThatIsNotThere) {
  EXPECT_THAT([] { parse_visible_device_list("100", 8); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr(
                  "'visible_device_list' listed an invalid GPU id '100' but visible device count is 8")));
  EXPECT_THROW(parse_visible_device_list("-1", 8), InvalidArgumentError);
}

TEST(VisibleDeviceList, RefusesAGpuGivenTwice) {
  EXPECT_THAT(
      [] { parse_visible_device_list("0,0", 8); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("visible_device_list contained a duplicate entry: 0,0")));
}

TEST(CudaVisibleDevices, UnsetShowsAll) {
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(gpus_of_environment(2), ElementsAre(0, 1));
}

TEST(CudaVisibleDevices, RenumbersGpus) {
  for (const char* list : {"3,2", "3, 2"}) {
    const EnvironmentVariable variable("CUDA_VISIBLE_DEVICES", list);
    EXPECT_THAT(gpus_of_environment(4), ElementsAre(3, 2)) << list;
  }
}

TEST(CudaVisibleDevices, EmptyHidesAll) {
  const EnvironmentVariable variable("CUDA_VISIBLE_DEVICES", "");
  EXPECT_THAT(gpus_of_environment(4), IsEmpty());
}

TEST(CudaVisibleDevices, EndsAtWhatIsNoGpu) {
  const EnvironmentVariable variable("CUDA_VISIBLE_DEVICES", "1,-1,0");
  EXPECT_THAT(gpus_of_environment(4), ElementsAre(1));
}

class GpusThatCudaCounted final : public FakeGpus {
 public:
  using FakeGpus::FakeGpus;
  bool applies_environment() const override { return true; }
};

// CUDA numbers what "2,3" leaves from 0: none of the two is number 2.
TEST(CudaVisibleDevices, IsNotAppliedAgainToWhatCudaHasCounted) {
  for (const char* list : {"2,3", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,1", "7,6"}) {
    const EnvironmentVariable variable("CUDA_VISIBLE_DEVICES", list);
    EXPECT_THAT(visible_gpus(GpusThatCudaCounted({FakeGpus::k80(0), FakeGpus::k80(1)})), ElementsAre(0, 1))
        << list;
  }
  const EnvironmentVariable variable("CUDA_VISIBLE_DEVICES", "1");
  EXPECT_THAT(visible_gpus(FakeGpus({FakeGpus::k80(0), FakeGpus::k80(1)})), ElementsAre(1));
}

TEST(VirtualGpusOfEnvironment, AreACountWithOrWithoutASize) {
  EXPECT_THAT(virtual_gpus_of_environment(), IsEmpty());
  for (const auto& [text, count, bytes] : {std::tuple("8", 8u, std::int64_t{2} << 30),
                                           {"4x2GiB", 4u, std::int64_t{2} << 30},
                                           {"1x512MiB", 1u, std::int64_t{512} << 20},
                                           {"2x4096", 2u, std::int64_t{4096}},
                                           {"0", 0u, std::int64_t{0}}}) {
    const EnvironmentVariable variable("KOLO_VIRTUAL_GPUS", text);
    const auto gpus = virtual_gpus_of_environment();
    ASSERT_EQ(gpus.size(), count) << text;
    for (const VirtualGpu& gpu : gpus) EXPECT_EQ(gpu.total_bytes, bytes) << text;
  }
}

TEST(VirtualGpusOfEnvironment, RefuseAllElse) {
  for (const char* text : {"", "two", "-1", "65", "4x", "4x2GB", "x2GiB", "4x-1GiB", "4x0GiB", "4 x 2GiB"}) {
    const EnvironmentVariable variable("KOLO_VIRTUAL_GPUS", text);
    EXPECT_THAT(
        [] { virtual_gpus_of_environment(); },
        ThrowsMessage<InvalidArgumentError>(AllOf(
            HasSubstr(std::string("KOLO_VIRTUAL_GPUS=\"") + text + "\" is not valid"), HasSubstr("4x2GiB"))))
        << text;
  }
}

TEST(LogGpus, ReportsPropertiesAndPeersOfTheVisibleOnes) {
  const FakeGpus gpus({FakeGpus::k80(0), FakeGpus::k80(1), FakeGpus::k80(2)});
  ::testing::internal::CaptureStderr();
  log_gpus(gpus, {1, 2});
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("Found device 0 with properties: "), HasSubstr("name: Tesla K80"),
                         HasSubstr("major: 3 minor: 7 memoryClockRate (GHz) 0.8235"),
                         HasSubstr("pciBusID 0000:00:11.0"), HasSubstr("Total memory: 4.00GiB"),
                         HasSubstr("Free memory: 3.00GiB")));
  EXPECT_THAT(log, AllOf(HasSubstr("DMA: 0 1 "), HasSubstr("0:   Y N "), HasSubstr("1:   N Y ")));
}

}  // namespace
}  // namespace kolo
