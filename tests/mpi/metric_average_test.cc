#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/optimizer/hooks.h>

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;

TEST(AverageMetrics, WithoutSamplesIsThePlainMean) {
  const Metrics averages = average_metrics({{"accuracy", rank()}, {"loss", 2.0 * rank()}});
  EXPECT_THAT(averages, ElementsAre(Pair("accuracy", (size() - 1) / 2.0), Pair("loss", size() - 1.0)));
}

// Rank r has r samples of value r: Σ r² / Σ r = (2R − 1) / 3.
TEST(AverageMetrics, WeighsBySamples) {
  const double value = rank() == 0 ? std::nan("") : rank();
  const double average = average_metrics({{"loss", value}}, rank()).at("loss");
  if (size() == 1) EXPECT_TRUE(std::isnan(average));
  else EXPECT_NEAR(average, (2 * size() - 1) / 3.0, 1e-12);
}

TEST(AverageMetrics, NamesWhatTheRanksDisagreeOn) {
  if (size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  EXPECT_THAT(
      [] {
        average_metrics({{rank() == 1 ? "b" : "a", 1}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("rank 0 has [\"a\"], rank 1 has [\"b\"]")));
  EXPECT_THAT(
      [] {
        average_metrics({{"a", 1}}, rank() == 1 ? std::optional<double>(3) : std::nullopt);
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("rank 1 gives its samples, rank 0 does not")));
}

TEST(MetricAverageHook, AveragesOverTheRunsOfAnEpochAndTheRanks) {
  Graph graph;
  Scope s(graph);
  const Output loss = placeholder(s.named("loss"), DType::f32, {}),
               samples = placeholder(s.named("n"), DType::i64, {});
  std::vector<std::pair<std::int64_t, double>> epochs;
  const auto hook = std::make_shared<MetricAverageHook>(
      MetricAverageOptions{.metrics = {{"loss", loss}},
                           .samples = samples,
                           .steps_per_epoch = 2,
                           .on_epoch = [&](std::int64_t epoch, const Metrics& averages) {
                             epochs.emplace_back(epoch, averages.at("loss"));
                           }});
  const auto run = [&](MonitoredTrainingSession& session, float value, std::int64_t count) {
    session.run({loss}, {{loss, Tensor::scalar(value)}, {samples, Tensor::scalar(count)}});
  };
  {
    MonitoredTrainingSession session(graph, {.hooks = {hook}});
    // In all R ranks: 1 sample of r, 3 samples of r + 4.
    run(session, static_cast<float>(rank()), 1);
    run(session, static_cast<float>(rank() + 4), 3);
    run(session, 7, 5);
    session.close();
  }
  const double mean_rank = (size() - 1) / 2.0;
  EXPECT_THAT(epochs, ElementsAre(Pair(1, mean_rank + 3), Pair(2, 7)));
}

TEST(MetricAverageHook, RefusesWhatItCannotDo) {
  EXPECT_THROW(MetricAverageHook({.metrics = {}, .steps_per_epoch = 1}), InvalidArgumentError);
  Graph graph;
  Scope s(graph);
  EXPECT_THROW(MetricAverageHook({.metrics = {{"a", constant(s, 1.0f)}}}), InvalidArgumentError);
}

}  // namespace
}  // namespace kolo
