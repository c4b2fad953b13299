#include <kolo/core/training/hooks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/summaries.h>
#include <kolo/core/training/monitored_session.h>

#include "tests/core/summary/read_events.h"
#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

class SummarySaver : public testing::Test {
 protected:
  std::shared_ptr<SummarySaverHook> hook(Output summary_op = {}) const {
    return std::make_shared<SummarySaverHook>(
        SummarySaverOptions{.summary_writer = writer_, .save_steps = 2, .summary_op = summary_op});
  }
  void train(const std::shared_ptr<SessionRunHook>& hook, int steps) {
    MonitoredTrainingSession sess(model_.graph, {.hooks = {hook}});
    for (int i = 0; i < steps; ++i) sess.run(model_.train);
  }
  TemporaryDirectory folder_;
  CountingGraph model_;
  std::shared_ptr<SummaryWriter> writer_ = std::make_shared<SummaryWriter>(folder_.path());
};

TEST_F(SummarySaver, WritesTheGraphTheStartAndEveryNthStep) {
  summary::scalar(model_.s, "count", model_.count);
  train(hook(), 4);
  EXPECT_THAT(
      read_events(writer_->path()),
      ElementsAre(HasSubstr("brain.Event:2"), StartsWith(R"({"step":1,"graph":[[)"),
                  R"({"step":1,"session":[1,""]})", R"({"step":1,"values":[{"tag":"count","scalar":1.0}]})",
                  R"({"step":3,"values":[{"tag":"count","scalar":3.0}]})"));
}

TEST_F(SummarySaver, WritesTheOneSummaryThatItIsGiven) {
  summary::scalar(model_.s, "other", model_.count);
  train(hook(summary::scalar(model_.s, "mine", model_.count)), 1);
  EXPECT_EQ(read_events(writer_->path()).back(), R"({"step":1,"values":[{"tag":"mine","scalar":1.0}]})");
}

TEST_F(SummarySaver, WritesNoValuesOfAGraphWithoutSummaries) {
  train(hook(), 3);
  EXPECT_EQ(read_events(writer_->path()).size(), 3u);
}

TEST_F(SummarySaver, WantsAWriterAndAGlobalStep) {
  EXPECT_THROW(SummarySaverHook({.save_steps = 1}), InvalidArgumentError);
  Graph graph;
  EXPECT_THAT([&] { hook()->begin(graph); }, ThrowsMessage<FailedPreconditionError>(
                                                 "Global step should be created to use SummarySaverHook."));
}

}  // namespace
}  // namespace kolo
