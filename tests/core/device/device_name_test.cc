// Rows are those of TensorFlow 1's own device name tests.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include <kolo/core/device/device_name.h>

namespace kolo {
namespace {

// The canonical form, or "malformed".
std::string canonical(std::string_view text) {
  const auto spec = parse_device_spec(text);
  return spec ? spec->to_string() : "malformed";
}

TEST(DeviceName, WithAllFieldsPrintsAsItWasRead) {
  const auto spec = parse_device_spec("/job:foo/replica:1/task:2/device:GPU:3");
  EXPECT_EQ(spec, (DeviceSpec{"foo", 1, 2, "GPU", 3}));
  EXPECT_EQ(spec->to_string(), "/job:foo/replica:1/task:2/device:GPU:3");
}

TEST(DeviceName, LeavesFieldsWithAStarUnset) {
  EXPECT_EQ(parse_device_spec("/job:*/replica:4/gpu:*"), (DeviceSpec{{}, 4, {}, "GPU", {}}));
  EXPECT_EQ(canonical("/job:*/replica:4/gpu:*"), "/replica:4/device:GPU:*");
  EXPECT_EQ(canonical("/job:*/replica:*/task:*/device:*"), "");
}

TEST(DeviceName, TakesFieldsInAnyOrder) {
  EXPECT_EQ(canonical("/gpu:*/job:*/replica:4"), "/replica:4/device:GPU:*");
  EXPECT_EQ(canonical("/device:CPU:1/task:2/job:w"), "/job:w/task:2/device:CPU:1");
}

TEST(DeviceName, TakesTheLastOfRepeatedFields) {
  EXPECT_EQ(canonical("/job:a/job:b"), "/job:b");
  EXPECT_EQ(canonical("/device:GPU:3/cpu:1"), "/device:CPU:1");
  EXPECT_EQ(canonical("/device:GPU:3/device:CPU"), "/device:CPU:*");
  EXPECT_EQ(canonical("/job:a/job:*"), "");
}

TEST(DeviceName, OfNothingOrASlashIsTheEmptySpec) {
  EXPECT_EQ(parse_device_spec(""), DeviceSpec());
  EXPECT_EQ(parse_device_spec("/"), DeviceSpec());
}

TEST(DeviceName, ReadsTheOldCpuAndGpuInEitherCase) {
  EXPECT_EQ(canonical("/cpu:0"), "/device:CPU:0");
  EXPECT_EQ(canonical("/CPU:0"), "/device:CPU:0");
  EXPECT_EQ(canonical("/gpu:12"), "/device:GPU:12");
  EXPECT_EQ(canonical("/GPU:*"), "/device:GPU:*");
}

TEST(DeviceName, KeepsTheCaseOfTheDeviceForm) {
  EXPECT_EQ(canonical("/device:gpu:0"), "/device:gpu:0");
  EXPECT_FALSE(parse_device_spec("/device:gpu:0")->matches(*parse_device_spec("/device:GPU:0")));
}

TEST(DeviceName, PrintsNoIndexWithoutAType) { EXPECT_EQ(canonical("/job:a/device:*:3"), "/job:a"); }

TEST(DeviceName, IsMalformedWhereTensorFlowSaysSo) {
  for (const char* text : {"/job:123/replica:1/task:2/device:GPU:3",
                           "foobar",
                           "/job:foo/replica:-1/task:2/device:GPU:3",
                           "/job:foo/replica:1/task:2/device:GPU:3/extra",
                           "/bar:3",
                           "/foo:bar",
                           "job:foo",
                           "CPU:0",
                           "/job:",
                           "/job:a-b",
                           "/job:_a",
                           "/replica:",
                           "/replica:+1",
                           "/task:1x",
                           "/task:4294967296",
                           "/cpu",
                           "/cpu:",
                           "/cpu:-1",
                           "/device",
                           "/device:",
                           "/device:GPU:",
                           "/device:GPU:a",
                           "/device:GPU:1:2",
                           "/device:1:GPU",
                           "/job:foo/",
                           "//job:foo",
                           "/job:foo /task:1"})
    EXPECT_EQ(canonical(text), "malformed") << text;
}

TEST(DeviceSpec, PrintsATypeWithoutIndexWithAStar) {
  EXPECT_EQ((DeviceSpec{"foo", 12, 3, "GPU", {}}.to_string()), "/job:foo/replica:12/task:3/device:GPU:*");
}

TEST(DeviceSpec, MatchesDevicesThatHaveItsFields) {
  const auto device = *parse_device_spec("/job:w/replica:0/task:1/device:GPU:2");
  for (const char* asked : {"", "/job:w", "/gpu:*", "/task:1/gpu:2", "/job:w/replica:0/task:1/device:GPU:2"})
    EXPECT_TRUE(parse_device_spec(asked)->matches(device)) << asked;
  for (const char* asked : {"/job:x", "/replica:1", "/task:0", "/cpu:*", "/gpu:1"})
    EXPECT_FALSE(parse_device_spec(asked)->matches(device)) << asked;
}

TEST(DeviceSpec, DoesNotMatchWhereTheDeviceLeavesAFieldOpen) {
  EXPECT_FALSE(parse_device_spec("/gpu:0")->matches(*parse_device_spec("/gpu:*")));
}

TEST(MergeScopes, TakesTheInnerFieldWhereItIsSet) {
  const auto merged = [](std::string_view outer, std::string_view inner) {
    return merge_scopes(*parse_device_spec(outer), *parse_device_spec(inner)).to_string();
  };
  EXPECT_EQ(merged("/device:GPU:7", "/device:GPU:*"), "/device:GPU:7");
  EXPECT_EQ(merged("/job:w/gpu:3", "/cpu:0"), "/job:w/device:CPU:0");
  EXPECT_EQ(merged("/job:w/gpu:3", "/device:CPU"), "/job:w/device:CPU:3");
  EXPECT_EQ(merged("/job:w/task:1", "/job:ps/replica:2"), "/job:ps/replica:2/task:1");
  EXPECT_EQ(merged("/job:w", ""), "/job:w");
}

TEST(LocalDeviceName, IsTaskZeroOfLocalhost) {
  EXPECT_EQ(local_device_name("CPU", 3), "/job:localhost/replica:0/task:0/device:CPU:3");
}

}  // namespace
}  // namespace kolo
