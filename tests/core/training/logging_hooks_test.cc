#include <kolo/core/training/hooks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/training/monitored_session.h>

#include "tests/core/summary/read_events.h"
#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

// What such a hook logs in so many training steps, by line.
std::vector<std::string> log_of(CountingGraph& model, const std::shared_ptr<SessionRunHook>& hook,
                                int steps) {
  const Session first(model.graph);  // of the process: it says which GPUs there are
  testing::internal::CaptureStderr();
  {
    MonitoredTrainingSession sess(model.graph, {.hooks = {hook}});
    for (int i = 0; i < steps; ++i) sess.run(model.train);
  }
  std::istringstream text(testing::internal::GetCapturedStderr());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

// Row 62 of the worked examples: on runs 1, 11, 21, 31.
TEST(LoggingTensorHook, LogsTheFirstRunAndThenEveryNth) {
  CountingGraph model;
  const auto hook = std::make_shared<LoggingTensorHook>(std::vector<LoggedTensor>{{"step", model.count}},
                                                        LoggingTensorOptions{.every_n_iter = 10});
  EXPECT_THAT(log_of(model, hook, 35),
              ElementsAre(testing::EndsWith("step = 1"), ContainsRegex("step = 11 \\([0-9.]+ sec\\)$"),
                          ContainsRegex("step = 21 \\([0-9.]+ sec\\)$"),
                          ContainsRegex("step = 31 \\([0-9.]+ sec\\)$")));
}

TEST(LoggingTensorHook, LogsAtTheEndOnlyWhereThatAloneIsAsked) {
  CountingGraph model;
  const auto hook = std::make_shared<LoggingTensorHook>(Outputs{model.w.read(), model.step.read()},
                                                        LoggingTensorOptions{.at_end = true});
  EXPECT_THAT(log_of(model, hook, 2), ElementsAre(HasSubstr(model.w.read().name() + " = [12.0 22.0], " +
                                                            model.step.read().name() + " = 2")));
}

TEST(LoggingTensorHook, HandsTheValuesToItsFormatter) {
  CountingGraph model;
  const auto hook = std::make_shared<LoggingTensorHook>(
      std::vector<LoggedTensor>{{"n", model.count}},
      LoggingTensorOptions{.every_n_iter = 2, .formatter = [](const auto& values) {
                             return fmt::format("{} is {}", values[0].first,
                                                values[0].second.template value<std::int64_t>());
                           }});
  EXPECT_THAT(log_of(model, hook, 3), ElementsAre(testing::EndsWith("n is 1"), testing::EndsWith("n is 3")));
}

TEST(LoggingTensorHook, RefusesWhatItCannotCount) {
  const auto make = [](LoggingTensorOptions options) { LoggingTensorHook(Outputs{}, std::move(options)); };
  constexpr char kText[] =
      "either at_end and/or exactly one of every_n_iter and every_n_secs must be provided.";
  EXPECT_THAT([&] { make({}); }, ThrowsMessage<InvalidArgumentError>(kText));
  EXPECT_THAT([&] { make({.every_n_iter = 1, .every_n_secs = 1}); },
              ThrowsMessage<InvalidArgumentError>(kText));
  EXPECT_THAT([&] { make({.every_n_iter = 0}); },
              ThrowsMessage<InvalidArgumentError>("invalid every_n_iter=0."));
}

TEST(LoggingTensorHook, RefusesATensorOfAnotherGraph) {
  CountingGraph model, other;
  LoggingTensorHook hook(Outputs{other.count}, {.every_n_iter = 1});
  EXPECT_THROW(hook.begin(model.graph), InvalidArgumentError);
}

TEST(LoggedText, WritesNumbersAsPythonDoes) {
  EXPECT_EQ(logged_text(Tensor::scalar(1.0f)), "1.0");
  EXPECT_EQ(logged_text(Tensor::scalar(-0.25)), "-0.25");
  EXPECT_EQ(logged_text(Tensor::scalar(true)), "True");
  EXPECT_EQ(logged_text(Tensor::of<std::int32_t>({2, 2}, {1, 2, 3, 4})), "[[1 2] [3 4]]");
  EXPECT_EQ(logged_text(Tensor::zeros(DType::u8, {0})), "[]");
  EXPECT_THAT(logged_text(Tensor::zeros(DType::u8, {1000})), testing::EndsWith("0 0 ...]"));
}

TEST(StepCounterHook, LogsAndWritesFromItsSecondFiringOn) {
  const TemporaryDirectory folder;
  CountingGraph model;
  const auto writer = std::make_shared<SummaryWriter>(folder.path());
  const auto hook =
      std::make_shared<StepCounterHook>(StepCounterOptions{.every_n_steps = 10, .summary_writer = writer});
  EXPECT_THAT(log_of(model, hook, 25), ElementsAre(ContainsRegex("global_step/sec: [0-9.e+]+$"),
                                                   ContainsRegex("global_step/sec: [0-9.e+]+$")));
  const std::vector<std::string> events = read_events(writer->path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_THAT(events[1], HasSubstr(R"({"step":11,"values":[{"tag":"global_step/sec","scalar":)"));
  EXPECT_THAT(events[2], HasSubstr(R"("step":21,)"));
}

TEST(StepCounterHook, WarnsAtMostFiveTimesOfAStepThatDoesNotMove) {
  CountingGraph model;
  testing::internal::CaptureStderr();
  {
    MonitoredTrainingSession sess(model.graph, {.hooks = {std::make_shared<StepCounterHook>()}});
    for (int i = 0; i < 8; ++i) sess.run(model.w.read());
  }
  const std::string text = testing::internal::GetCapturedStderr();
  int warnings = 0;
  for (std::size_t at = 0; (at = text.find("has not been increased", at)) != std::string::npos; ++at)
    ++warnings;
  EXPECT_EQ(warnings, 5);
  EXPECT_THAT(text, Not(HasSubstr("/sec:")));
}

TEST(StepCounterHook, WantsAGlobalStepAndOneMeasure) {
  Graph graph;
  EXPECT_THAT(
      [&] { StepCounterHook().begin(graph); },
      ThrowsMessage<FailedPreconditionError>("Global step should be created to use StepCounterHook."));
  EXPECT_THAT([] { StepCounterHook({.every_n_steps = 1, .every_n_secs = 1}); },
              ThrowsMessage<InvalidArgumentError>(
                  "exactly one of every_n_steps and every_n_secs should be provided."));
}

}  // namespace
}  // namespace kolo
