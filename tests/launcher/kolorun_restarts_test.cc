// What goes on beyond one start of a job: restarts, files that stop it, logs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/launcher/kolorun_program.h"

namespace kolo::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Restarts : public testing::Test {
 protected:
  // Appends a line to the log each time it starts, then ends with `code`.
  std::vector<std::string> logging_program(int code) const {
    return {"-q",         "-n", "1",
            "--restarts", "2",  "--",
            "sh",         "-c", "echo start >> " + log_ + "; exit " + std::to_string(code)};
  }
  int starts() const {
    std::ifstream file(log_);
    int count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  }
  void SetUp() override { std::filesystem::remove(log_); }
  const std::string log_ = testing::TempDir() + "kolorun_restarts";
};

TEST_F(Restarts, StartAFailedJobAgainAsOftenAsAllowed) {
  const Ended ended = run(logging_program(4));
  EXPECT_EQ(ended.code, 4);
  EXPECT_EQ(starts(), 3);
  const auto named = testing::MatchesRegex("rank 0 on [^ ]+ ended with exit code 4");
  EXPECT_THAT(lines_of(ended.err),
              ElementsAre(named, "kolorun: the job ended with exit code 4; restart 1 of 2", named,
                          "kolorun: the job ended with exit code 4; restart 2 of 2", named));
}

TEST_F(Restarts, AreNotForSuccessNorForABadCommandLine) {
  EXPECT_EQ(run(logging_program(0)).code, 0);
  EXPECT_EQ(starts(), 1);
  EXPECT_EQ(run(logging_program(2)).code, 2);
  EXPECT_EQ(starts(), 2);
}

// As a program of kolo's tells at its end; the step grows by `grows` with each start.
std::vector<std::string> telling(const std::string& log, int first, int grows) {
  return {"-q",
          "-n",
          "1",
          "--restarts",
          "3",
          "--",
          "sh",
          "-c",
          fmt::format("echo start >> {0}; n=$(wc -l < {0}); printf '\\001kolo last-step %d\\n' "
                      "$(({1} + {2} * n)) >&2; exit 3",
                      log, first, grows)};
}

TEST_F(Restarts, OfAnElasticJobEndLikewise) {
  std::vector<std::string> command = telling(log_, 0, 0);
  command.insert(command.begin(), "--elastic");
  const Ended ended = run(command);
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(starts(), 3);
  EXPECT_THAT(ended.err, HasSubstr("kolorun: 3 starts in a row completed no step; the first ended with: "));
}

TEST_F(Restarts, EndWhereThreeStartsInARowCompleteNoStep) {
  const Ended ended = run(telling(log_, 0, 0));
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(starts(), 3);
  EXPECT_THAT(ended.err,
              testing::ContainsRegex("kolorun: 3 starts in a row completed no step; the first ended with: "
                                     "(rank 0 on [^ ]+ ended with )?exit code 3\n$"));
}

TEST_F(Restarts, GoOnAsOftenAsAllowedWhereEachStartCompletesSteps) {
  const Ended ended = run(telling(log_, 0, 10));
  EXPECT_EQ(starts(), 4);
  EXPECT_THAT(ended.err, Not(HasSubstr("in a row")));
}

TEST_F(Restarts, EndWhereAllButTheFirstStopAtTheSameStep) {
  EXPECT_THAT(run(telling(log_, 40, 0)).err, Not(HasSubstr("in a row")));
  EXPECT_EQ(starts(), 4);  // the first made 40 steps, and three none beyond them
}

// As the kernel does where memory is short; the program then gets on by 10 steps in each start, and ends by
// itself should it be started too often.
TEST_F(Restarts, AreUsedUpByRanksThatAreKilledOnTheOnlyHost) {
  char hostname[256] = {};
  gethostname(hostname, sizeof hostname - 1);
  const Ended ended = run({"-q", "--elastic", "-H", hostname + std::string(":1"), "--cooldown", "0:0",
                           "--restarts", "3", "--", "sh", "-c",
                           fmt::format("echo start >> {0}; n=$(wc -l < {0}); [ $n -lt 8 ] || exit 0; "
                                       "printf '\\001kolo last-step %d\\n' $((10 * n)) >&2; kill -9 $$",
                                       log_)});
  EXPECT_EQ(ended.code, 128 + SIGKILL) << ended.err;
  EXPECT_EQ(starts(), 4);
  EXPECT_THAT(
      ended.err,
      testing::AllOf(HasSubstr("kolorun: the job ended with exit code 137; restart 3 of 3\n"),
                     HasSubstr(" has lost ranks twice in 10 minutes and is not used for 0 s; going on "
                               "with 1 rank on ")));
}

TEST_F(Restarts, AreNotForAJobThatWasAskedToStop) {
  RunningProgram program(
      command({"-q", "-n", "1", "--restarts", "2"},
              {"sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.1; done"}));
  ASSERT_TRUE(program.wait_for("ready"));
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish(), 5);
  EXPECT_THAT(program.err(), Not(HasSubstr("restart")));
}

TEST(StopFile, StopsTheJobWhenItAppears) {
  const std::string path = testing::TempDir() + "kolorun_stop_file";
  std::filesystem::remove(path);
  const std::vector<std::string> program = {
      "sh", "-c", "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done"};
  RunningProgram job(command({"-q", "-n", "1", "--restarts", "2", "--stop-file", path}, program));
  ASSERT_TRUE(job.wait_for("ready"));
  std::ofstream(path) << "the machine goes";
  EXPECT_EQ(job.finish(), 0);
  EXPECT_THAT(job.out(), HasSubstr("saved\n"));
  EXPECT_THAT(job.err(), HasSubstr("kolorun: " + path + " is there; asking the ranks to stop\n"));
  const Ended again = run({"-n", "1", "--stop-file", path, "--", "true"});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("it is there already"));

  const std::string hosts = testing::TempDir() + "kolorun_pe_hosts";
  std::ofstream(hosts) << "localhost 1 all.q UNDEFINED\n";
  const Ended queued_again =
      run({"--stop-file", path, "--", "echo", "on"}, {"PE_HOSTFILE=" + hosts, "JOB_ID=7", "RESTARTED=1"});
  EXPECT_EQ(queued_again.code, 0) << queued_again.err;
  EXPECT_THAT(queued_again.err, HasSubstr("removed " + path + ", which has stopped an earlier start"));
  EXPECT_FALSE(std::filesystem::exists(path));
  std::filesystem::remove(hosts);
}

TEST(LogDir, HasAFileOfEachRankAlsoOfASilentOne) {
  const std::string folder = testing::TempDir() + "kolorun_silent_logs";
  std::filesystem::remove_all(folder);
  EXPECT_EQ(run({"-q", "-n", "2", "--log-dir", folder, "--", "sh", "-c",
                 "[ $OMPI_COMM_WORLD_RANK = 1 ] || echo on"})
                .code,
            0);
  EXPECT_EQ(std::filesystem::file_size(folder + "/rank_0.log"), 3u);
  EXPECT_EQ(std::filesystem::file_size(folder + "/rank_1.log"), 0u);
  std::filesystem::remove_all(folder);
}

TEST(LogDir, KeepsEachRanksLinesAndThoseOfTheJobAcrossStarts) {
  const std::string folder = testing::TempDir() + "kolorun_logs/of a job";
  std::filesystem::remove_all(folder);
  const auto text = [&](const char* name) {
    std::ifstream file(folder + "/" + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const auto once = [&] {
    return run({"-q", "-n", "2", "--restarts", "1", "--log-dir", folder, "--", "sh", "-c",
                "echo out $OMPI_COMM_WORLD_RANK; printf 'seen\\rbefore a feed\\r\\n'; echo err >&2; exit 4"});
  };
  EXPECT_EQ(once().code, 4);
  EXPECT_THAT(lines_of(text("rank_1.log")), testing::IsSupersetOf({"out 1", "err", "before a feed"}));
  EXPECT_THAT(lines_of(text("job.log")),
              testing::IsSupersetOf(
                  {"[1] before a feed", "kolorun: the job ended with exit code 4; restart 1 of 1"}));
  const auto job = lines_of(text("job.log"));
  EXPECT_EQ(std::count(job.begin(), job.end(), "[0] out 0"), 2);
  EXPECT_EQ(std::count_if(job.begin(), job.end(),
                          [](const std::string& line) {
                            return line.starts_with("kolorun: 20") &&
                                   line.find(": 2 ranks: sh -c") != std::string::npos;
                          }),
            2);
  EXPECT_THAT(text("job.log"), testing::ContainsRegex("ended with exit code 4\n"));
  EXPECT_THAT(text("rank_1.log"), Not(HasSubstr("seen")));
  EXPECT_THAT(run({"-n", "1", "--log-dir", "/proc/kolo", "--", "true"}).err,
              HasSubstr("--log-dir /proc/kolo: the files cannot be written"));
}

}  // namespace
}  // namespace kolo::launcher
