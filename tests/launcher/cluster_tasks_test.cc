#include <kolo/launcher/cluster_tasks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include <kolo/core/base/error.h>
#include <kolo/launcher/job_token.h>
#include <kolo/launcher/mpirun_command.h>

#include "tests/shell_command.h"

namespace kolo::launcher {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::StartsWith;
using testing::ThrowsMessage;

TEST(ClusterTasks, AreCountedByJobInTheOrderOfTheRanks) {
  const ClusterJobs jobs = parse_cluster("worker=3,ps=1");
  EXPECT_THAT(jobs, ElementsAre(Pair("worker", 3), Pair("ps", 1)));
  EXPECT_EQ(total_tasks(jobs), 4);
}

TEST(ClusterTasks, RefuseWhatIsNoCluster) {
  for (const char* text :
       {"", "ps", "ps=", "ps=0", "ps=-1", "ps=x", "1ps=1", "ps=1,,w=1", "ps=1,ps=1", "p s=1"})
    EXPECT_THAT([&] { parse_cluster(text); },
                ThrowsMessage<InvalidArgumentError>(StartsWith("--cluster \"" + std::string(text) + "\"")))
        << text;
}

TEST(ClusterTasks, HaveFreePortsOfTheirOwnOnOneMachine) {
  const std::vector<std::string> addresses = free_local_addresses(20);
  EXPECT_EQ(std::set<std::string>(addresses.begin(), addresses.end()).size(), 20);
  EXPECT_THAT(addresses, testing::Each(StartsWith("127.0.0.1:")));
}

TEST(ClusterTasks, CountPortsUpOnEachHost) {
  EXPECT_THAT(addresses_on({{"a", 2}, {"::1", 1}}, 3, 2222), ElementsAre("a:2222", "a:2223", "[::1]:2222"));
}

// As mpirun starts it: the words of the command, with the rank in the environment.
TEST(ClusterTasks, FindTheClusterAndTheirPlaceInTheEnvironment) {
  const std::vector<std::string> words =
      program_of_tasks({{"ps", 1}, {"worker", 2}}, {"h:1", "h:2", "h:3"},
                       {"sh", "-c", "echo \"$KOLO_CLUSTER $KOLO_END_WITH_WORKERS $1\"", "x", "a b"});
  const auto line_of_rank = [&](int rank) {
    std::string line = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
    line += " " + shell_quote(words);
    return run_command(line).output;
  };
  const std::string cluster = R"({"cluster":{"ps":["h:1"],"worker":["h:2","h:3"]},"task":)";
  EXPECT_EQ(line_of_rank(0), cluster + R"({"index":0,"type":"ps"}} 1 a b)" + "\n");
  EXPECT_EQ(line_of_rank(2), cluster + R"({"index":1,"type":"worker"}}  a b)" + "\n");
}

std::string token_file() {
  const char* const name = std::getenv("KOLO_CLUSTER_TOKEN_FILE");
  return name == nullptr ? "" : name;
}

TEST(JobToken, IsAnotherForEachJobAndGoesWithIt) {
  std::string first;
  {
    const JobToken token;
    std::ifstream(token_file()) >> first;
    EXPECT_EQ(first.size(), 64);
  }
  EXPECT_EQ(token_file(), "");
  const JobToken token;
  std::string second;
  std::ifstream(token_file()) >> second;
  EXPECT_NE(first, second);
}

TEST(JobToken, IsMadeForClustersHereWithoutCredentials) {
  Options cluster;
  cluster.cluster = {{"ps", 1}};
  EXPECT_TRUE(JobToken::is_wanted(cluster, {}));
  EXPECT_FALSE(JobToken::is_wanted({}, {}));
  Surroundings with_tls;
  with_tls.variables = {"PATH", "KOLO_CLUSTER_TLS_CA"};
  EXPECT_FALSE(JobToken::is_wanted(cluster, with_tls));
  Options exporting = cluster;
  exporting.exported = {"KOLO_CLUSTER_TOKEN_FILE=/f"};
  EXPECT_FALSE(JobToken::is_wanted(exporting, {}));
  Options elsewhere = cluster;
  elsewhere.hosts = {{"node1", 1}};
  EXPECT_FALSE(JobToken::is_wanted(elsewhere, {}));
}

}  // namespace
}  // namespace kolo::launcher
