#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <map>

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <kolo/launcher/slurm_job.h>

namespace kolo::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Answers = std::map<std::string, std::string>;

// Slurm as it answers on a line of words; no answer to others.
SlurmJob job(const Answers& answers) {
  return SlurmJob("43", 0, [answers](const std::vector<std::string>& command) -> std::optional<std::string> {
    const auto known = answers.find(fmt::format("{}", fmt::join(command, " ")));
    return known == answers.end() ? std::nullopt : std::optional(known->second);
  });
}

std::vector<std::string> names(const std::vector<Host>& hosts) {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(host.name);
  return names;
}

TEST(SlurmJob, ProbesTheAddressesAndPortsThatSlurmHas) {
  const Answers answers = {
      {"scontrol show config",
       "SlurmctldPort           = 6817\nSlurmdParameters        = (null)\nSlurmdPort              = 7000\n"},
      {"scontrol show node -o a,b",
       "NodeName=a Arch=x86_64 CPUTot=2 NodeAddr=10.0.0.1 NodeHostName=a Version=22.05.8 OS=Linux 5 #1\n"
       "NodeName=b NodeAddr=b NodeHostName=b Port=7001 Version=22.05.8\n"}};
  const Agent agent = job(answers).agent({{"a", 2}, {"b", 2}});
  EXPECT_THAT(agent.command, IsEmpty());
  EXPECT_EQ(agent.port, 7000);
  EXPECT_EQ(agent.daemons.at("a").name, "10.0.0.1");
  EXPECT_EQ(agent.daemons.at("a").port, 7000);
  EXPECT_EQ(agent.daemons.at("b").name, "b");
  EXPECT_EQ(agent.daemons.at("b").port, 7001);
}

TEST(SlurmJob, ProbesTheUsualPortWhereSlurmDoesNotAnswer) {
  const Agent agent = job({}).agent({{"a", 2}});
  EXPECT_EQ(agent.port, 6818);
  EXPECT_THAT(agent.daemons, IsEmpty());
}

TEST(SlurmJob, KnowsTheHostsThatItHasNow) {
  const auto hosts = job({{"squeue -h -o %N -j 43", "node[1-2,04]\n"}}).hosts();
  ASSERT_TRUE(hosts);
  EXPECT_THAT(names(*hosts), ElementsAre("node1", "node2", "node04"));
  EXPECT_EQ(job({}).hosts(), std::nullopt);
  EXPECT_EQ(job({{"squeue -h -o %N -j 43", "\n"}}).hosts(), std::nullopt);
}

TEST(SlurmJob, IsEndedWhereSlurmSaysThatANodeIsDown) {
  const std::string show = "scontrol show job 43";
  EXPECT_TRUE(
      job({{show, "   JobState=COMPLETING Reason=NodeDown Dependency=(null)\n"}}).is_ended_by({"node3"}));
  EXPECT_FALSE(job({{show, "   JobState=COMPLETING Reason=None\n   Restarts=0\n"}}).is_ended_by({"node3"}));
  EXPECT_FALSE(job({{show, "   JobState=COMPLETING Reason=NodeDown\n"}}).is_ended_by({}));
  EXPECT_FALSE(job({}).is_ended_by({"node3"}));
}

TEST(SlurmJob, IsEndedByANodeThatIsDownSinceAMomentAgoWhereItIsQueuedAgain) {
  const std::string show = "scontrol show job 43", again = "JobState=COMPLETING Reason=None\n Restarts=1 x\n";
  const std::string state = "sinfo -h -N -n node2,node3 -o %T %H";
  const auto at = [](std::chrono::seconds ago) {
    const std::time_t time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() - ago);
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::localtime(time));
  };
  const std::string up = "idle Unknown\n";
  const std::vector<std::string> lost = {"node2", "node3"};
  EXPECT_TRUE(job({{show, again}, {state, up + "down* " + at(std::chrono::seconds(5))}}).is_ended_by(lost));
  EXPECT_FALSE(job({{show, again}, {state, up + "down* " + at(std::chrono::hours(1))}}).is_ended_by(lost))
      << "taken out of a job with --no-kill, which was preempted later";
  EXPECT_FALSE(job({{show, again}, {state, up + "mixed* " + at(std::chrono::seconds(5))}}).is_ended_by(lost));
}

}  // namespace
}  // namespace kolo::launcher
