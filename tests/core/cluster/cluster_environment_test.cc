#include <gmock/gmock.h>

#include <cstdlib>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/cluster_spec.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ClusterEnvironmentTest : public ::testing::Test {
 protected:
  ClusterEnvironmentTest() { clear(); }
  ~ClusterEnvironmentTest() override { clear(); }

  static void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

  static void clear() {
    unsetenv("KOLO_CLUSTER");
    unsetenv("TF_CONFIG");
  }
};

TEST_F(ClusterEnvironmentTest, WithoutEitherVariableIsTheChiefOfNoCluster) {
  const ClusterEnvironment found = ClusterSpec::from_environment();
  EXPECT_FALSE(found.cluster);
  EXPECT_EQ(found.job_name, "");
  EXPECT_TRUE(found.is_chief);
}

TEST_F(ClusterEnvironmentTest, TellsClusterAndTask) {
  set("KOLO_CLUSTER",
      R"({"cluster":{"ps":["h:1"],"worker":{"0":"h:2","4":"h:3"}},"task":{"type":"worker","index":4}})");
  const ClusterEnvironment found = ClusterSpec::from_environment();
  EXPECT_EQ(found.cluster, ClusterSpec({{"ps", {"h:1"}}, {"worker", {{0, "h:2"}, {4, "h:3"}}}}));
  EXPECT_EQ(found.job_name, "worker");
  EXPECT_EQ(found.task_index, 4);
  EXPECT_FALSE(found.is_chief);
}

TEST_F(ClusterEnvironmentTest, PrefersKolosOwnVariable) {
  set("TF_CONFIG", R"({"cluster":{"ps":["h:1"]},"task":{"type":"ps","index":0}})");
  EXPECT_EQ(ClusterSpec::from_environment().job_name, "ps");
  set("KOLO_CLUSTER", R"({"cluster":{"worker":["h:2"]},"task":{"type":"worker","index":0}})");
  EXPECT_EQ(ClusterSpec::from_environment().job_name, "worker");
}

TEST_F(ClusterEnvironmentTest, TakesWhatElseStandsInTfConfig) {
  set("TF_CONFIG",
      R"({"cluster":{"master":["h:1"]},"task":{"type":"master","index":"0","trial":"1"},"environment":"cloud"})");
  EXPECT_TRUE(ClusterSpec::from_environment().is_chief);
  set("TF_CONFIG", R"({"environment":"cloud"})");
  EXPECT_TRUE(ClusterSpec::from_environment().is_chief);
}

TEST_F(ClusterEnvironmentTest, HasOneChief) {
  struct Case {
    const char *cluster, *job;
    int task;
    bool is_chief;
  };
  for (const auto& [cluster, job, task, is_chief] : std::initializer_list<Case>{
           {R"({"chief":["c:1"],"worker":["a:1","b:1"]})", "worker", 0, false},
           {R"({"chief":["c:1"],"worker":["a:1","b:1"]})", "chief", 0, true},
           {R"({"worker":["a:1","b:1"]})", "worker", 0, true},
           {R"({"worker":["a:1","b:1"]})", "worker", 1, false},
           {R"({"master":["c:1"],"worker":["a:1"]})", "worker", 0, false},
           {R"({"master":["c:1"],"worker":["a:1"]})", "master", 0, true},
           {R"({"ps":["c:1"],"worker":["a:1"]})", "ps", 0, false},
       }) {
    set("TF_CONFIG",
        fmt::format(R"({{"cluster":{},"task":{{"type":"{}","index":{}}}}})", cluster, job, task));
    EXPECT_EQ(ClusterSpec::from_environment().is_chief, is_chief) << job << ' ' << task << " of " << cluster;
  }
}

TEST_F(ClusterEnvironmentTest, NamesTheVariableThatIsMalformed) {
  struct Case {
    const char *value, *text;
  };
  for (const auto& [value, text] : std::initializer_list<Case>{
           {"", "is no JSON"},
           {"ps|h:1", "is no JSON"},
           {"[]", "must be an object"},
           {R"({"cluster":[],"task":{"type":"ps","index":0}})", "must be an object of jobs"},
           {R"({"cluster":{"ps":"h:1"},"task":{"type":"ps","index":0}})",
            "The tasks for job 'ps' must be a list"},
           {R"({"cluster":{"ps":["h:1"]}})", "The task must be given as"},
           {R"({"cluster":{"ps":["h:1"]},"task":{"type":"ps"}})", "The task must be given as"},
           {R"({"cluster":{"ps":["h:1"]},"task":{"index":0}})", "The task must be given as"},
           {R"({"cluster":{"ps":["h:1"]},"task":"ps"})", "The task must be given as"},
           {R"({"cluster":{"ps":["h:1"]},"task":{"type":"1ps","index":0}})", "Invalid job name '1ps'"},
           {R"({"cluster":{"ps":["h:1"]},"task":{"type":"ps","index":-1}})",
            "Invalid task index -1 in job 'ps'"},
           {R"({"cluster":{"ps":["h:1"]},"task":{"type":"ps","index":2147483648}})",
            "Invalid task index 2147483648"},
           {R"({"cluster":{"ps":["h:1"]},"task":{"type":"ps","index":1.5}})", "Invalid task index 1.5"},
           {R"({"cluster":{"ps":["h:1"]},"task":{"type":"ps","index":[0]}})", "Invalid task index [0]"},
       })
    for (const char* const name : {"TF_CONFIG", "KOLO_CLUSTER"}) {
      clear();
      set(name, value);
      EXPECT_THAT([] { ClusterSpec::from_environment(); },
                  ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr(text), HasSubstr(name))))
          << value;
    }
}

}  // namespace
}  // namespace kolo
