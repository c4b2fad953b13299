#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/ranges.h>

#include <kolo/launcher/step_watch.h>

namespace kolo::launcher {
namespace {

using std::chrono::seconds;

Options heterogeneous(Launcher launcher, int groups) {
  Options options;
  options.launcher = launcher;
  options.allotment.emplace();
  options.allotment->groups = groups;
  return options;
}

const Environment kOfTwo = {
    {"SLURM_JOB_ID_HET_GROUP_0", "127"}, {"SLURM_JOB_ID_HET_GROUP_1", "128"}, {"SLURM_STEP_ID", "3"}};

// Slurm answers what `steps` is at that time; "?" for no answer.
struct Lab {
  std::string steps;
  std::vector<std::string> asked;
  StepWatch watch =
      *StepWatch::of(heterogeneous(Launcher::srun, 2), kOfTwo,
                     [this](const std::vector<std::string>& command) -> std::optional<std::string> {
                       asked.push_back(fmt::format("{}", fmt::join(command, " ")));
                       return steps == "?" ? std::nullopt : std::optional(steps);
                     });
  // One look, at the time it is due.
  bool look(const std::string& now) {
    steps = now;
    return watch.is_over(watch.next_look());
  }
};

TEST(StepWatch, IsForSrunAndSeveralComponentsAlone) {
  const Ask nobody = [](const auto&) { return std::nullopt; };
  EXPECT_FALSE(StepWatch::of(heterogeneous(Launcher::mpirun, 2), kOfTwo, nobody));
  EXPECT_FALSE(StepWatch::of(heterogeneous(Launcher::srun, 1), kOfTwo, nobody));
  EXPECT_FALSE(StepWatch::of(heterogeneous(Launcher::srun, 3), kOfTwo, nobody));
  EXPECT_FALSE(StepWatch::of(Options{}, kOfTwo, nobody));
}

TEST(StepWatch, EndsSrunAfterTwoAnswersWithoutAStep) {
  Lab lab;
  EXPECT_FALSE(lab.look("127.batch\n127.0\n128.0\n"));
  EXPECT_FALSE(lab.look("127.batch\n128.0\n"));
  EXPECT_FALSE(lab.look("127.batch\n127.3\n"));
  EXPECT_TRUE(lab.look("127.batch\n"));
  EXPECT_EQ(lab.asked.back(), "squeue -h -s -j 127,128 -o %i");
}

TEST(StepWatch, DoesNotEndOneThatHasStartedNothingYet) {
  Lab lab;
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(lab.look(""));
}

TEST(StepWatch, CountsNoAnswerAsNothing) {
  Lab lab;
  lab.watch.hear(StepWatch::Clock::now());
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(lab.look("?"));
  EXPECT_FALSE(lab.look(""));
  EXPECT_FALSE(lab.look("128.0"));
  EXPECT_FALSE(lab.look(""));
  EXPECT_TRUE(lab.look(""));
}

TEST(StepWatch, AsksNobodyWhileRanksWrite) {
  Lab lab;
  const auto start = StepWatch::Clock::now();
  for (int i = 0; i < 100; ++i) {
    lab.watch.hear(start + seconds(9 * i));
    EXPECT_FALSE(lab.watch.is_over(start + seconds(9 * i + 9)));
  }
  EXPECT_TRUE(lab.asked.empty());
}

TEST(StepWatch, WhatIsWrittenMeanwhileBeginsItAnew) {
  Lab lab;
  lab.watch.hear(StepWatch::Clock::now());
  EXPECT_FALSE(lab.look(""));
  lab.watch.hear(lab.watch.next_look());
  EXPECT_FALSE(lab.look(""));
  EXPECT_TRUE(lab.look(""));
}

}  // namespace
}  // namespace kolo::launcher
