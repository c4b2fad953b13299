#include <kolo/core/cluster/cluster_spec.h>

#include <gmock/gmock.h>

#include <limits>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::ThrowsMessage;

constexpr int kLastIndex = std::numeric_limits<std::int32_t>::max();

template <typename Call>
void expect_refused(const Call& call, const std::string& text) {
  EXPECT_THAT(call, ThrowsMessage<InvalidArgumentError>(HasSubstr(text)));
}

TEST(ClusterSpec, CountsAndPrintsListsAndIndices) {
  const ClusterSpec spec({{"eval", {{7, "x:70"}}}, {"ps", {"p:1", "q:2"}}, {"idle", {}}});
  EXPECT_EQ(spec.num_tasks("eval"), 1);
  EXPECT_EQ(spec.num_tasks("ps"), 2);
  EXPECT_EQ(spec.num_tasks("idle"), 0);
  EXPECT_THAT(spec.task_indices("eval"), ElementsAre(7));
  EXPECT_EQ(spec.to_string(), "ClusterSpec({'eval': {7: 'x:70'}, 'idle': {}, 'ps': ['p:1', 'q:2']})");
}

// Row 65 of the worked examples.
TEST(ClusterSpec, FillsGapsOfAListWithNone) {
  const ClusterSpec spec({{"ps", {"p:1", "q:2"}},
                          {"worker", {"a:1", "b:1", "c:1"}},
                          {"sparse", {{0, "a0:1"}, {3, "a3:1"}}},
                          {"idle", {}}});
  EXPECT_THAT(spec.jobs(), ElementsAre("idle", "ps", "sparse", "worker"));
  EXPECT_EQ(spec.num_tasks("worker"), 3);
  EXPECT_EQ(spec.num_tasks("sparse"), 2);
  EXPECT_THAT(spec.job_tasks("sparse"),
              ElementsAre(Optional(Eq("a0:1")), std::nullopt, std::nullopt, Optional(Eq("a3:1"))));
  EXPECT_THAT(spec.job_tasks("idle"), IsEmpty());
  EXPECT_EQ(spec.task_address("sparse", 3), "a3:1");
}

TEST(ClusterSpec, NamesTheJobOrTaskThatIsNotThere) {
  const ClusterSpec spec({{"sparse", {{0, "a0:1"}, {3, "a3:1"}}}});
  expect_refused([&] { spec.num_tasks("ps"); }, "No such job in cluster: 'ps'");
  expect_refused([&] { spec.job_tasks("ps"); }, "No such job in cluster: 'ps'");
  expect_refused([&] { spec.task_address("sparse", 1); }, "No task with index 1 in job 'sparse'");
}

TEST(ClusterSpec, IsFalseWithoutAnyJob) {
  EXPECT_FALSE(ClusterSpec());
  EXPECT_EQ(ClusterSpec().to_string(), "ClusterSpec({})");
  EXPECT_TRUE(ClusterSpec({{"idle", {}}}));
}

TEST(ClusterSpec, IsMadeOfMaps) {
  const ClusterSpec spec({{"ps", {"p:1", "q:2"}}, {"idle", {}}});
  const std::map<std::string, std::vector<std::string>> lists = {{"ps", {"p:1", "q:2"}}, {"idle", {}}};
  const std::map<std::string, ClusterSpec::Tasks> mixed = {{"ps", {{0, "p:1"}, {1, "q:2"}}},
                                                           {"idle", std::vector<std::string>()}};
  EXPECT_EQ(ClusterSpec(lists), spec);
  EXPECT_EQ(ClusterSpec(mixed), spec);
  EXPECT_EQ(ClusterSpec(spec.as_map()), spec);
  expect_refused(
      [] {
        ClusterSpec(std::map<std::string, std::map<int, std::string>>{{"ps", {{-1, "p:1"}}}});
      },
      "Invalid task index -1 in job 'ps'");
}

TEST(ClusterSpec, IsReadFromItsText) {
  const ClusterSpec spec = ClusterSpec::from_text("ps|p:1;q:2,worker|w:3");
  const ClusterSpec map({{"worker", {{0, "w:3"}}}, {"ps", {{1, "q:2"}, {0, "p:1"}}}});
  EXPECT_EQ(spec, map);
  EXPECT_EQ(spec.fingerprint(), map.fingerprint());
  EXPECT_EQ(ClusterSpec::from_text("v6|[::1]:5;unix:/tmp/s,idle|"),
            ClusterSpec({{"v6", {"[::1]:5", "unix:/tmp/s"}}, {"idle", {}}}));
  EXPECT_EQ(ClusterSpec::from_text(""), ClusterSpec());
}

TEST(ClusterSpec, NamesWhatItsTextListsTwiceOrLeavesOut) {
  expect_refused([] { ClusterSpec::from_text("ps|p:1,ps|q:2"); }, "Job 'ps' is listed twice");
  expect_refused([] { ClusterSpec({{"ps", {"p:1"}}, {"ps", {"q:2"}}}); }, "Job 'ps' is listed twice");
  expect_refused([] { ClusterSpec::from_text("ps"); }, "\"ps\" is no job of a cluster");
  expect_refused([] { ClusterSpec::from_text("ps|p:1,"); }, "\"\" is no job of a cluster");
  expect_refused([] { ClusterSpec::from_text("|p:1"); }, "Invalid job name ''");
}

TEST(ClusterSpec, IsReadFromJson) {
  const ClusterSpec spec =
      ClusterSpec::from_json(R"({"ps": ["p:1", "q:2"], "eval": {"7": "x:70"}, "idle": [], "none": {}})");
  EXPECT_EQ(spec, ClusterSpec({{"ps", {"p:1", "q:2"}}, {"eval", {{7, "x:70"}}}, {"idle", {}}, {"none", {}}}));
  EXPECT_EQ(spec.to_json(), R"({"eval":{"7":"x:70"},"idle":{},"none":{},"ps":["p:1","q:2"]})");
  EXPECT_EQ(ClusterSpec::from_json(spec.to_json()), spec);
}

TEST(ClusterSpec, SaysWhatIsWrongInJson) {
  expect_refused([] { ClusterSpec::from_json(R"({"ps": "p:1"})"); },
                 "The tasks for job 'ps' must be a list or a dictionary from integers to strings.");
  expect_refused([] { ClusterSpec::from_json(R"({"ps": [1]})"); }, "The tasks for job 'ps' must be a list");
  expect_refused([] { ClusterSpec::from_json(R"({"ps": null})"); }, "The tasks for job 'ps' must be a list");
  expect_refused([] { ClusterSpec::from_json(R"({"ps": {"x": "p:1"}})"); },
                 "Invalid task index x in job 'ps'");
  for (const char* const index : {"-1", "2147483648", "07", "", "1.0", "99999999999999999999"})
    expect_refused([&] { ClusterSpec::from_json(fmt::format(R"({{"ps": {{"{}": "p:1"}}}})", index)); },
                   fmt::format("Invalid task index {} in job 'ps'", index));
  expect_refused([] { ClusterSpec::from_json(R"({"1ps": ["p:1"]})"); }, "Invalid job name '1ps'");
  expect_refused([] { ClusterSpec::from_json("[]"); }, "must be an object");
}

TEST(ClusterSpec, RefusesWhatIsNoJson) {
  for (const char* const text : {"", "{", "{\"ps\": [\"p:1\"]} x", "{\"ps\": [\"\xff\"]}"})
    expect_refused([&] { ClusterSpec::from_json(text); }, "is no JSON");
}

TEST(ClusterSpec, RefusesJsonThatNamesSomethingTwice) {
  expect_refused([] { ClusterSpec::from_json(R"({"ps": ["p:1"], "ps": ["q:1"]})"); }, "'ps' is listed twice");
  expect_refused([] { ClusterSpec::from_json(R"({"ps": {"0": "p:1", "0": "q:1"}})"); },
                 "'0' is listed twice");
}

TEST(ClusterSpec, SurvivesDeepJson) {
  constexpr int kDepth = 1000000;
  const std::string lists = std::string(kDepth, '[') + std::string(kDepth, ']');
  expect_refused([&] { ClusterSpec::from_json("{\"ps\": " + lists + "}"); },
                 "The tasks for job 'ps' must be a list");
  expect_refused([&] { ClusterSpec::from_json(lists.substr(0, kDepth)); }, "is no JSON");
}

TEST(ClusterSpec, RefusesNamesThatNoDeviceHas) {
  for (const char* const name : {"", "1ps", "*", "p s", "ps/task:1", "ps:1", "büro", "_ps", "ps\n"})
    expect_refused([&] { ClusterSpec({{name, {"p:1"}}}); }, fmt::format("Invalid job name '{}'", name));
}

TEST(ClusterSpec, TakesIndicesUpToTheLastOf32Bits) {
  const ClusterSpec spec({{"ps", {{kLastIndex, "p:1"}}}});
  EXPECT_EQ(spec.task_address("ps", kLastIndex), "p:1");
  EXPECT_EQ(ClusterSpec::from_json(spec.to_json()), spec);
  EXPECT_EQ(ClusterSpec::from_wire_form(spec.wire_form()), spec);
  EXPECT_THROW(spec.job_tasks("ps"), ResourceExhaustedError);
  expect_refused([] { ClusterSpec({{"ps", {{-1, "p:1"}}}}); }, "Invalid task index -1 in job 'ps'");
}

TEST(ClusterSpec, NamesTheTwoTasksOfOneAddress) {
  expect_refused(
      [] {
        ClusterSpec({{"ps", {"h:5"}}, {"worker", {"g:5", "h:5"}}});
      },
      "Cluster lists h:5 twice: /job:ps/task:0 and /job:worker/task:1");
  expect_refused([] { ClusterSpec({{"ps", {"h:5", "H:05"}}}); }, "Cluster lists H:05 twice");
  expect_refused([] { ClusterSpec({{"ps", {"unix:/s", "unix:/s"}}}); }, "Cluster lists unix:/s twice");
  expect_refused([] { ClusterSpec({{"ps", {"?", "?"}}}); }, "Cluster lists ? twice");
}

TEST(ClusterSpec, LetsManyTasksAskForAFreePort) {
  EXPECT_EQ(ClusterSpec({{"ps", {"h:0", "h:0"}}, {"worker", {"h:0"}}}).num_tasks("ps"), 2);
}

TEST(ClusterSpec, KeepsAddressesAsTheyAre) {
  const ClusterSpec spec({{"ps", {"h:65536", "bücher:1", "it's\n", ""}}});
  EXPECT_EQ(spec.task_address("ps", 0), "h:65536");
  EXPECT_EQ(spec.to_string(), "ClusterSpec({'ps': ['h:65536', 'bücher:1', 'it\\'s\\x0a', '']})");
}

TEST(ClusterSpec, IsEqualToItsCopyAndToWhatItsWireFormSays) {
  const ClusterSpec spec({{"worker", {"w:1", "\xff:2"}}, {"ps", {{4, "p:1"}}}, {"idle", {}}});
  const ClusterSpec same({{"idle", {}}, {"ps", {{4, "p:1"}}}, {"worker", {"w:1", "\xff:2"}}});
  ClusterSpec copy = ClusterSpec::from_text("ps|p:1");
  copy = spec;
  EXPECT_EQ(copy, spec);
  EXPECT_EQ(same.wire_form(), spec.wire_form());
  EXPECT_EQ(ClusterSpec::from_wire_form(spec.wire_form()), spec);
  EXPECT_EQ(ClusterSpec::from_wire_form(""), ClusterSpec());
}

TEST(ClusterSpec, TellsDifferentOnesApart) {
  const ClusterSpec spec({{"ps", {"p:1", "q:2"}}});
  for (const ClusterSpec& other :
       {ClusterSpec({{"ps", {"q:2", "p:1"}}}), ClusterSpec({{"ps", {{0, "p:1"}, {2, "q:2"}}}}),
        ClusterSpec({{"px", {"p:1", "q:2"}}}), ClusterSpec({{"ps", {"p:1", "q:2"}}, {"idle", {}}})}) {
    EXPECT_NE(other, spec);
    EXPECT_NE(other.fingerprint(), spec.fingerprint());
  }
}

// Lists of (field, length, …) as protobuf's encoding has them.
TEST(ClusterSpec, HasAWireFormThatDoesNotChange) {
  const ClusterSpec spec({{"ps", {"p:1", "q:2"}}});
  EXPECT_EQ(spec.wire_form(),
            std::string("\x0a\x14\x0a\x02ps\x12\x05\x12\x03p:1\x12\x07\x08\x01\x12\x03q:2", 2 + 4 + 7 + 9));
}

TEST(ClusterSpec, RefusesBytesThatAreNoneOfItsWireForms) {
  expect_refused([] { ClusterSpec::from_wire_form("\xff"); }, "no cluster in its wire form");
  const std::string job = ClusterSpec({{"ps", {"p:1"}}}).wire_form();
  expect_refused([&] { ClusterSpec::from_wire_form(job + job); }, "Job 'ps' is listed twice");
  expect_refused([&] { ClusterSpec::from_wire_form(job.substr(0, job.size() - 1)); },
                 "no cluster in its wire form");
  expect_refused([] { ClusterSpec::from_wire_form(std::string("\x0a\x00", 2)); }, "Invalid job name ''");
}

}  // namespace
}  // namespace kolo
