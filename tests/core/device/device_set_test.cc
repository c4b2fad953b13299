#include <kolo/core/device/device_set.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <tests/core/device/fake_gpus.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::EnvironmentVariable;
using testing::FakeGpus;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

std::shared_ptr<GpuPlatform> eight_gpus() { return make_virtual_gpu_platform(std::vector<VirtualGpu>(8)); }

std::vector<std::string> local_names(const DeviceSet& set) {
  std::vector<std::string> names;
  for (const auto& device : set.devices()) names.push_back(device->local_name());
  return names;
}

TEST(MakeDevices, IsOneCpuWithoutAnyOption) {
  const DeviceSet set = make_devices({}, nullptr);
  EXPECT_THAT(local_names(set), ElementsAre("CPU:0"));
  EXPECT_EQ(set.host()->name(), "/job:localhost/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(set.host()->priority(), 60);
}

TEST(MakeDevices, MakesAsManyCpusAsAreAskedFor) {
  EXPECT_EQ(make_devices({.device_count = {{"CPU", 56}}}, nullptr).devices().size(), 56u);
}

TEST(MakeDevices, NeedsACpu) {
  EXPECT_THAT(
      [] {
        make_devices({.device_count = {{"CPU", 0}}}, nullptr);
      },
      ThrowsMessage<NotFoundError>(HasSubstr("No CPU devices are available in this process")));
}

TEST(MakeDevices, RefusesANegativeCount) {
  EXPECT_THROW(make_devices({.device_count = {{"GPU", -1}}}, nullptr), InvalidArgumentError);
}

TEST(MakeDevices, TakesAllGpusUnlessACountCapsThem) {
  const auto gpus = eight_gpus();
  EXPECT_EQ(make_devices({}, gpus).devices().size(), 9u);
  EXPECT_THAT(local_names(make_devices({.device_count = {{"GPU", 2}}}, gpus)),
              ElementsAre("CPU:0", "GPU:0", "GPU:1"));
  EXPECT_EQ(make_devices({.device_count = {{"GPU", 20}}}, gpus).devices().size(), 9u);
  EXPECT_EQ(make_devices({}, gpus).devices().back()->priority(), 210);
}

// Row 31 of the worked examples.
TEST(MakeDevices, NumbersGpusByTheirPlaceInTheVisibleList) {
  const DeviceSet set = make_devices({.gpu_options = {.visible_device_list = "5,3"}}, eight_gpus());
  EXPECT_THAT(local_names(set), ElementsAre("CPU:0", "GPU:0", "GPU:1"));
  EXPECT_THAT(set.find("GPU:0").physical_description(),
              HasSubstr("device: 5, name: virtual GPU, pci bus id: "));
  EXPECT_THAT(set.find("GPU:1").physical_description(),
              HasSubstr("device: 3, name: virtual GPU, pci bus id: "));
}

std::string gpu_of_local_rank(int local_rank) {
  ProcessInfo rank = process();
  const ProcessInfo before = rank;
  rank.local_rank = local_rank;
  set_process(rank);
  const DeviceSet set = make_devices({.gpu_options = {.visible_device_list = "local"}}, eight_gpus());
  set_process(before);
  return set.devices().size() == 2 ? set.find("GPU:0").physical_description() : "";
}

TEST(MakeDevices, TakesTheGpuOfTheLocalRankAmongTheVisibleOnes) {
  EXPECT_THAT(gpu_of_local_rank(3), HasSubstr("device: 3,"));
  EXPECT_THAT(gpu_of_local_rank(11), HasSubstr("device: 3,"));
  const EnvironmentVariable variable("CUDA_VISIBLE_DEVICES", "6");  // as Slurm has it with --gpus-per-task=1
  EXPECT_THAT(gpu_of_local_rank(1), HasSubstr("device: 6,"));
}

TEST(MakeDevices, CountsTheVisibleListBehindTheEnvironment) {
  const EnvironmentVariable variable("CUDA_VISIBLE_DEVICES", "3,2");
  const DeviceSet set = make_devices({.gpu_options = {.visible_device_list = "1"}}, eight_gpus());
  EXPECT_THAT(local_names(set), ElementsAre("CPU:0", "GPU:0"));
  EXPECT_THAT(set.find("GPU:0").physical_description(), HasSubstr("device: 2,"));
}

// Says so to who wants details: programs that name the GPU of their rank run without any, too.
struct MakeDevicesInDetail : ::testing::Test {
  MakeDevicesInDetail() { set_log_level(LogLevel::debug); }
  ~MakeDevicesInDetail() override { set_log_level(LogLevel::info); }
};

TEST_F(MakeDevicesInDetail, DoesNotParseTheVisibleListWhereNoGpuIsWantedOrThere) {
  const DeviceOptions none_wanted = {.device_count = {{"GPU", 0}},
                                     .gpu_options = {.visible_device_list = "abc"}};
  EXPECT_EQ(make_devices(none_wanted, eight_gpus()).devices().size(), 1u);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(make_devices({.gpu_options = {.visible_device_list = "abc"}}, nullptr).devices().size(), 1u);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("there is no GPU in this process"));
}

// "list = local rank" on a machine whose GPUs are hidden.
TEST_F(MakeDevicesInDetail, DoesNotParseTheVisibleListWhereTheEnvironmentHidesEveryGpu) {
  for (const char* hidden : {"", "-1"}) {
    const EnvironmentVariable variable("CUDA_VISIBLE_DEVICES", hidden);
    ::testing::internal::CaptureStderr();
    const DeviceSet set = make_devices({.gpu_options = {.visible_device_list = "3"}}, eight_gpus());
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("there is no GPU in this process"));
    EXPECT_THAT(local_names(set), ElementsAre("CPU:0"));
  }
}

TEST(MakeDevices, RefusesAVisibleListThatDoesNotFit) {
  EXPECT_THROW(make_devices({.gpu_options = {.visible_device_list = "8"}}, eight_gpus()),
               InvalidArgumentError);
}

TEST(MakeDevices, HidesWhatNoFilterMatches) {
  EXPECT_THAT(local_names(make_devices({.device_filters = {"/device:CPU:*", "/gpu:3"}}, eight_gpus())),
              ElementsAre("CPU:0", "GPU:3"));
  EXPECT_THAT(local_names(make_devices({.device_filters = {"/job:elsewhere"}}, eight_gpus())), ElementsAre());
  EXPECT_THAT([] { make_devices({.device_filters = {"gpu three"}}, nullptr); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'gpu three'")));
}

TEST(MakeDevices, IgnoresGpusOfTooSmallACapability) {
  const auto gpus =
      std::make_shared<FakeGpus>(std::vector{FakeGpus::k80(0, 2, 0), FakeGpus::k80(1)}, std::pair(3, 0));
  ::testing::internal::CaptureStderr();
  const DeviceSet set = make_devices({}, gpus);
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      HasSubstr("Ignoring visible gpu device (device: 0, name: Tesla K80, pci bus id: 0000:00:10.0) with "
                "Cuda compute capability 2.0. The minimum required Cuda capability is 3.0."));
  EXPECT_THAT(set.find("GPU:0").physical_description(), HasSubstr("device: 1,"));
}

TEST(MakeDevices, LogsWhatItFindsOnceForAPlatform) {
  const auto gpus = make_virtual_gpu_platform(std::vector<VirtualGpu>(1));
  ::testing::internal::CaptureStderr();
  make_devices({}, gpus);
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr("Found device 0 with properties: "), HasSubstr("name: virtual GPU"),
            HasSubstr("Creating kolo device (/gpu:0) -> (device: 0, name: virtual GPU, pci bus id: ")));
  ::testing::internal::CaptureStderr();
  make_devices({}, gpus);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("Found device")));
}

TEST(DeviceSet, FindsADeviceUnderAllItsNames) {
  const DeviceSet set = make_devices({}, eight_gpus());
  for (const char* name : {"/job:localhost/replica:0/task:0/device:GPU:1",
                           "/job:localhost/replica:0/task:0/gpu:1", "/device:GPU:1", "GPU:1"})
    EXPECT_EQ(set.find(name).name(), "/job:localhost/replica:0/task:0/device:GPU:1") << name;
}

TEST(DeviceSet, RefusesANameThatItDoesNotKnow) {
  const DeviceSet set = make_devices({}, nullptr);
  EXPECT_THAT([&] { set.find("/device:GPU:1"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("/device:GPU:1 unknown device.")));
}

TEST(DeviceSet, MapsDevicesToWhatTheyAreMadeOf) {
  EXPECT_EQ(make_devices({}, nullptr).mapping(), "Device mapping: no known devices.");
  EXPECT_EQ(
      make_devices({.device_count = {{"GPU", 1}}}, eight_gpus()).mapping(),
      "Device mapping:\n/job:localhost/replica:0/task:0/device:GPU:0 -> device: 0, name: virtual GPU, pci "
      "bus id: 0000:00:00.0");
}

TEST(DeviceSet, BearsTheNameOfItsTask) {
  EXPECT_EQ(make_devices({.task = "/job:worker/replica:0/task:3"}, nullptr).host()->name(),
            "/job:worker/replica:0/task:3/device:CPU:0");
}

}  // namespace
}  // namespace kolo
