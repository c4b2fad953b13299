// Rows are those of TensorFlow 1's own device name tests.
#include <gmock/gmock.h>

#include <optional>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/device/device_name.h>

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The canonical form, or "malformed".
std::string canonical(std::string_view text) {
  const auto spec = parse_device_spec(text);
  return spec ? spec->to_string() : "malformed";
}

// Row 1 of the worked examples.
TEST(DeviceName, WithAllFieldsPrintsAsItWasRead) {
  const auto spec = parse_device_spec("/job:foo/replica:1/task:2/device:GPU:3");
  EXPECT_EQ(spec, (DeviceSpec{"foo", 1, 2, "GPU", 3}));
  EXPECT_EQ(spec->to_string(), "/job:foo/replica:1/task:2/device:GPU:3");
}

// Row 2 of the worked examples.
TEST(DeviceName, LeavesFieldsWithAStarUnset) {
  EXPECT_EQ(parse_device_spec("/job:*/replica:4/gpu:*"), (DeviceSpec{{}, 4, {}, "GPU", {}}));
  EXPECT_EQ(canonical("/job:*/replica:4/gpu:*"), "/replica:4/device:GPU:*");
  EXPECT_EQ(canonical("/job:*/replica:*/task:*/device:*"), "");
}

// Row 3 of the worked examples.
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

// Row 4 of the worked examples comes first.
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

// Row 16 of the worked examples.
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

DeviceSpec spec(std::string_view text) { return parse_device_spec(text).value(); }

TEST(LocalDeviceForm, IsATypeAndAnIndex) {
  EXPECT_EQ(parse_local_device_name("GPU:12"), (DeviceSpec{{}, {}, {}, "GPU", 12}));
  for (const char* text : {"", "GPU", "GPU:", ":1", "GPU:*", "GPU:-1", "/GPU:1", "1:1", "GPU:1:1"})
    EXPECT_EQ(parse_local_device_name(text), std::nullopt) << text;
}

// Row 5 of the worked examples.
TEST(CompleteDeviceName, TakesWhatIsMissingFromTheBase) {
  const char* base = "/job:foo/replica:10/task:0/device:CPU:0";
  EXPECT_EQ(complete_device_name("CPU:0", base), base);
  EXPECT_EQ(complete_device_name("GPU:3", base), "/job:foo/replica:10/task:0/device:GPU:3");
  EXPECT_EQ(complete_device_name("/task:4", base), "/job:foo/replica:10/task:4/device:CPU:0");
  EXPECT_EQ(complete_device_name("", base), base);
}

TEST(CompleteDeviceName, RefusesABaseThatLeavesAFieldOpen) {
  EXPECT_THAT([] { complete_device_name("CPU:0", "/job:foo/task:0/device:CPU:0"); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("/job:foo/task:0/device:CPU:0 should be fully specified")));
}

TEST(CompleteDeviceName, RefusesATextThatIsNoName) {
  EXPECT_THAT(
      [] { complete_device_name("foobar", "/job:foo/replica:10/task:0/device:CPU:0"); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Could not parse foobar into a device specification.")));
}

// Row 6 of the worked examples.
TEST(LookupNames, AreTheFullNameAndTheOldOne) {
  EXPECT_THAT(lookup_names(spec("/job:foo/replica:10/task:0/device:GPU:1")),
              ElementsAre("/job:foo/replica:10/task:0/device:GPU:1", "/job:foo/replica:10/task:0/gpu:1"));
}

TEST(LookupNames, OfTheOwnProcessLeaveTheTaskOut) {
  EXPECT_THAT(local_lookup_names(spec("/job:foo/replica:10/task:0/device:GPU:1")),
              ElementsAre("/device:GPU:1", "GPU:1"));
}

std::string merged(std::string_view a, std::string_view b, Conflict on_conflict = Conflict::error) {
  return merge_constraints(spec(a), spec(b), on_conflict).to_string();
}

// Row 7 of the worked examples.
TEST(MergeConstraints, TakesTheFieldsOfBoth) {
  EXPECT_EQ(merged("/job:foo/replica:0", "/replica:0/task:1"), "/job:foo/replica:0/task:1");
  EXPECT_EQ(merged("/gpu:*", "/gpu:3"), "/device:GPU:3");
  EXPECT_EQ(merged("", "/job:a"), "/job:a");
}

// Row 8 of the worked examples, and its likes.
TEST(MergeConstraints, NamesTheFieldsThatClash) {
  const auto fails_with = [](std::string_view a, std::string_view b, const std::string& fields) {
    EXPECT_THAT([&] { merged(a, b); }, ThrowsMessage<InvalidArgumentError>(HasSubstr(
                                           "Cannot merge devices with incompatible " + fields + ": '" +
                                           spec(a).to_string() + "' and '" + spec(b).to_string() + "'")));
  };
  fails_with("/job:foo", "/job:bar", "jobs");
  fails_with("/replica:0", "/replica:1", "replicas");
  fails_with("/task:0", "/task:1", "tasks");
  fails_with("/gpu:*", "/cpu:*", "types");
  fails_with("/gpu:0", "/gpu:1", "ids");
}

// Rows 8 and 9 of the worked examples.
TEST(MergeConstraints, ForgivesTypesAndIndicesWhereSoft) {
  EXPECT_EQ(merged("/gpu:*", "/cpu:1", Conflict::soft), "");
  EXPECT_EQ(merged("/device:GPU:1", "/device:GPU:2", Conflict::soft), "/device:GPU:*");
  EXPECT_EQ(merged("/job:a/gpu:1", "/task:2/cpu:1", Conflict::soft), "/job:a/task:2");
  EXPECT_THROW(merged("/job:a", "/job:b", Conflict::soft), InvalidArgumentError);
  EXPECT_THROW(merged("/replica:0", "/replica:1", Conflict::soft), InvalidArgumentError);
  EXPECT_THROW(merged("/task:0", "/task:1", Conflict::soft), InvalidArgumentError);
}

TEST(MergeConstraints, TakesTheOthersTypeAndIndexWhereItOverrides) {
  EXPECT_EQ(merged("/gpu:*", "/cpu:1", Conflict::override), "/device:CPU:1");
  EXPECT_EQ(merged("/gpu:1", "/gpu:2", Conflict::override), "/device:GPU:2");
  EXPECT_EQ(merged("/job:a/gpu:1", "", Conflict::override), "/job:a/device:GPU:1");
  EXPECT_THROW(merged("/job:a", "/job:b", Conflict::override), InvalidArgumentError);
}

TEST(ScopeDevice, TakesABareTypeAndAnyCaseOfCpuAndGpu) {
  EXPECT_EQ(parse_scope_device("gpu").to_string(), "/device:GPU:*");
  EXPECT_EQ(parse_scope_device("/device:cpu:2").to_string(), "/device:CPU:2");
  EXPECT_EQ(parse_scope_device("job:a/task:1").to_string(), "/job:a/task:1");
  EXPECT_EQ(parse_scope_device(""), DeviceSpec());
}

TEST(DeviceSpec, IsCompatibleUnlessAFieldOfBothDiffers) {
  EXPECT_TRUE(spec("/job:a/gpu:*").is_compatible_with(spec("/task:1/gpu:2")));
  EXPECT_TRUE(spec("").is_compatible_with(spec("/gpu:2")));
  EXPECT_FALSE(spec("/gpu:1").is_compatible_with(spec("/gpu:2")));
  EXPECT_FALSE(spec("/job:a").is_compatible_with(spec("/job:b/gpu:2")));
}

TEST(LocalDeviceName, IsTaskZeroOfLocalhost) {
  EXPECT_EQ(local_device_name("CPU", 3), "/job:localhost/replica:0/task:0/device:CPU:3");
}

}  // namespace
}  // namespace kolo
