#include <kolo/core/training/hooks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <kolo/core/base/error.h>
#include <kolo/core/training/monitored_session.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ProfilerHook, TracesEveryNthStepAfterTheFirst) {
  CountingGraph model;
  const TemporaryDirectory folder;
  const auto hook =
      std::make_shared<ProfilerHook>(ProfilerOptions{.save_steps = 2, .output_dir = folder.path()});
  {
    MonitoredTrainingSession sess(model.graph, {.hooks = {hook}});
    for (int i = 0; i < 6; ++i) sess.run(model.train);
  }
  std::set<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(folder.path()))
    files.insert(file.path().filename());
  EXPECT_EQ(files, (std::set<std::string>{"timeline-2.json", "timeline-4.json", "timeline-6.json"}));
  std::stringstream text;
  text << std::ifstream(folder.path() + "/timeline-2.json").rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("\"traceEvents\""));
  EXPECT_THAT(text.str(), HasSubstr(model.count.node->name()));
}

TEST(ProfilerHook, WantsStepsOrSecondsAndAGlobalStep) {
  EXPECT_THROW(ProfilerHook({}), InvalidArgumentError);
  Graph graph;
  ProfilerHook hook({.save_steps = 1});
  EXPECT_THAT([&] { hook.begin(graph); }, ThrowsMessage<FailedPreconditionError>(HasSubstr(
                                              "Global step should be created to use ProfilerHook.")));
}

}  // namespace
}  // namespace kolo
