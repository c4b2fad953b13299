// Environments of batch jobs, in allotments/*.env: each says where it comes from and what is found in it.
//   NAME=value     a variable            NAME@=line|line   a variable that names a file of these lines
//   command|output what a program says   = … the allotment, or `none`     ! … words of the error
#include <kolo/launcher/allotment.h>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <kolo/core/base/error.h>
#include <kolo/launcher/host_lists.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Case {
  Environment environment;
  std::map<std::string, std::string> programs;
  std::string expected, refused;
};

std::string lines_of(std::string text) {
  std::replace(text.begin(), text.end(), '|', '\n');
  return text + "\n";
}

Case read_case(const std::filesystem::path& path, const TemporaryDirectory& folder) {
  Case found;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    const size_t equals = line.find('='), bar = line.find('|');
    if (line.starts_with("= ")) found.expected = line.substr(2);
    else if (line.starts_with("! ")) found.refused = line.substr(2);
    else if (equals != std::string::npos && equals > 0 && line[equals - 1] == '@') {
      const std::string name = line.substr(0, equals - 1);
      std::ofstream(folder / name) << lines_of(line.substr(equals + 1));
      found.environment[name] = folder / name;
    } else if (bar != std::string::npos && bar < equals)
      found.programs[line.substr(0, bar)] = line.substr(bar + 1);
    else if (bar != std::string::npos) ADD_FAILURE() << path << ": " << line;
    else found.environment[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return found;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

Ask answering(const std::map<std::string, std::string>& programs) {
  return [programs](const std::vector<std::string>& command) -> std::optional<std::string> {
    const auto known = programs.find(joined(command));
    return known == programs.end() ? std::nullopt : std::optional(known->second);
  };
}

std::string told(const std::optional<Allotment>& job) {
  if (!job) return "none";
  std::string cores;
  for (const int count : cores_of_ranks(*job, job->hosts, total_slots(job->hosts)))
    cores += fmt::format("{}{}", cores.empty() ? "" : ",", count);
  return fmt::format("{} {} ranks {} cores {} job {} restarts {}{}", job->system, format_hosts(job->hosts),
                     job->ranks, cores, job->job, job->restarts,
                     job->also.empty() ? "" : " also " + job->also);
}

class Allotments : public testing::TestWithParam<std::string> {};

TEST_P(Allotments, AreWhatTheSystemHasSetAside) {
  const TemporaryDirectory folder;
  const Case given = read_case(std::filesystem::path(ALLOTMENTS) / (GetParam() + ".env"), folder);
  ASSERT_NE(given.expected.empty(), given.refused.empty());
  try {
    const auto found = find_allotment(given.environment, answering(given.programs));
    ASSERT_EQ(given.refused, "");
    EXPECT_EQ(told(found), given.expected);
  } catch (const InvalidArgumentError& error) {
    ASSERT_NE(given.refused, "") << error.what();
    EXPECT_THAT(error.what(), HasSubstr(given.refused));
  }
}

std::vector<std::string> all_cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(ALLOTMENTS))
    names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(OfEachSystem, Allotments, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param; });

TEST(HostList, ExpandsRangesAndKeepsTheirZeros) {
  EXPECT_THAT(expand_host_list("a[1-3,07-09],b[1-2]-ib,c"),
              ElementsAre("a1", "a2", "a3", "a07", "a08", "a09", "b1-ib", "b2-ib", "c"));
  EXPECT_THAT(expand_host_list("r[1-2]n[8-9]"), ElementsAre("r1n8", "r1n9", "r2n8", "r2n9"));
  EXPECT_THAT(expand_host_list("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
}

TEST(HostList, IsEmptyForAnyOtherText) {
  for (const char* text : {"", ",", "a,,b", "a[", "a]", "a[]", "a[1-]", "a[2-1]", "a[x]", "a[[1]]", "a[1-2],",
                           "a[0-99999999]", "a[1-2000][1-2000]"})
    EXPECT_THAT(expand_host_list(text), IsEmpty()) << text;
}

TEST(Counts, AreOneForEachHost) {
  EXPECT_THAT(expand_counts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  for (const char* text :
       {"", "2(x", "x", "2(y3)", "-4", "0", "2(x0)", "9223372036854775807(x2)", "()", "1,", "1(x99999999)"})
    EXPECT_THAT(expand_counts(text), IsEmpty()) << text;
}

Allotment of_two_hosts() {
  Allotment job;
  job.system = "Slurm";
  job.job = "7";
  job.source = "SLURM_TASKS_PER_NODE";
  job.hosts = {{"a", 2}, {"b.cluster", 1}};
  job.cores = {8, 4};
  return job;
}

TEST(CoresOfRanks, AreTheHostsDividedByTheRanksThatRunThere) {
  EXPECT_THAT(cores_of_ranks(of_two_hosts(), {{"a", 2}, {"b", 1}}, 3), ElementsAre(4, 4));
  EXPECT_THAT(cores_of_ranks(of_two_hosts(), {{"b", 2}}, 2), ElementsAre(2));
  EXPECT_THAT(cores_of_ranks(of_two_hosts(), {{"other", 2}}, 2), ElementsAre(0));
}

TEST(AllotmentJson, HoldsHostsAndCommand) {
  Allotment job;
  job.system = "PBS";
  job.source = "PBS_NODEFILE";
  job.hosts = {{"n1", 2}, {"n2", 1}};
  job.ranks = 3;
  job.cores_per_rank = 4;
  job.job = "77.server";
  EXPECT_EQ(allotment_json(job, {"mpirun", "--host", "n1:2,n2:1"}),
            R"({"event":"allotment","system":"PBS","source":"PBS_NODEFILE","job":"77.server","restarts":0,)"
            R"("ranks":3,"hosts":[{"name":"n1","ranks":2,"cores_per_rank":4},)"
            R"({"name":"n2","ranks":1,"cores_per_rank":4}],"command":["mpirun","--host","n1:2,n2:1"]})"
            "\n");
}

TEST(AllotmentText, HasALineForEachHost) {
  Allotment job = of_two_hosts();
  job.gpus_per_host = 1;
  EXPECT_EQ(allotment_text(job),
            "a: 2 ranks of 4 cores, 1 GPU, from SLURM_TASKS_PER_NODE\n"
            "b.cluster: 1 rank of 4 cores, 1 GPU, from SLURM_TASKS_PER_NODE\n");
}

}  // namespace
}  // namespace kolo::launcher
