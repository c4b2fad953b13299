// What a monitored session writes into its summary_dir.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/summaries.h>
#include <kolo/core/training/monitored_session.h>

#include "tests/core/summary/read_events.h"
#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

class SummaryDirectory : public testing::Test {
 protected:
  // The events of so many steps.
  std::vector<std::string> trained(MonitoredTrainingSessionOptions options, int steps) {
    summary::scalar(model_.s, "count", model_.count);
    options.summary_dir = folder_.path();
    {
      MonitoredTrainingSession sess(model_.graph, options);
      for (int i = 0; i < steps; ++i) sess.run(model_.train);
    }
    std::vector<std::string> events;
    for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
      for (const std::string& event : read_events(file.path())) events.push_back(event);
    return events;
  }

  TemporaryDirectory folder_;
  CountingGraph model_;
};

TEST_F(SummaryDirectory, GetsStepsPerSecondAndSummaries) {
  const auto events = trained({.save_summaries_steps = 2, .log_step_count_steps = 2}, 3);
  EXPECT_THAT(events, Contains(HasSubstr(R"({"step":1,"values":[{"tag":"count","scalar":1.0}]})")));
  EXPECT_THAT(events, Contains(HasSubstr(R"({"step":3,"values":[{"tag":"count","scalar":3.0}]})")));
  EXPECT_THAT(events, Contains(HasSubstr(R"({"step":3,"values":[{"tag":"global_step/sec")")));
}

TEST_F(SummaryDirectory, GetsNothingOfWhatIsTurnedOff) {
  EXPECT_TRUE(trained({.save_summaries_steps = 0, .log_step_count_steps = 0}, 3).empty());
}

TEST_F(SummaryDirectory, GetsTheSummariesOfTheScaffoldAlone) {
  const Output doubled = summary::scalar(model_.s, "doubled", add(model_.s, model_.count, model_.count));
  const auto events =
      trained({.save_summaries_steps = 1, .log_step_count_steps = 0, .scaffold = {.summary_op = doubled}}, 1);
  EXPECT_THAT(events, Contains(HasSubstr(R"({"step":1,"values":[{"tag":"doubled","scalar":2.0}]})")));
  EXPECT_THAT(events, Not(Contains(HasSubstr(R"("tag":"count")"))));
}

TEST_F(SummaryDirectory, TakesStepsOrSeconds) {
  EXPECT_THAT([&] { trained({.save_summaries_steps = 1, .save_summaries_secs = 1}, 1); },
              ThrowsMessage<InvalidArgumentError>("Can not provide both every_secs and every_steps."));
}

}  // namespace
}  // namespace kolo
