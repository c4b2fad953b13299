#include <kolo/core/training/hooks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/monitored_session.h>

#include "tests/core/training/counting_graph.h"
#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Metrics by the step: what evaluations of such a training would give.
std::shared_ptr<EvaluationHook> losses(const CountingGraph& model, std::vector<double> by_evaluation,
                                       std::vector<std::int64_t>* steps = nullptr) {
  return std::make_shared<EvaluationHook>(EvaluationOptions{
      .evaluate =
          [&model, by_evaluation, steps, next = std::size_t{0}](Session& session) mutable {
            if (steps != nullptr) steps->push_back(model.global_step(session));
            const double loss = by_evaluation.at(std::min(next++, by_evaluation.size() - 1));
            return std::map<std::string, double>{{"loss", loss}};
          },
      .every_n_steps = 2});
}

// The step at which it ends, 20 at most.
std::int64_t trained(CountingGraph& model, const std::vector<std::shared_ptr<SessionRunHook>>& hooks) {
  MonitoredTrainingSession sess(model.graph, {.hooks = hooks});
  while (!sess.should_stop() && sess.global_step() < 20) sess.run(model.train);
  return sess.global_step();
}

TEST(EvaluationHook, EvaluatesEveryNthStepAndAtTheEnd) {
  CountingGraph model;
  std::vector<std::int64_t> steps;
  const auto hook = losses(model, {1}, &steps);
  {
    MonitoredTrainingSession sess(model.graph, {.hooks = {hook}});
    for (int i = 0; i < 5; ++i) sess.run(model.train);
  }
  EXPECT_THAT(steps, ElementsAre(2, 4, 5));
  EXPECT_EQ(hook->last()->step, 5);
}

TEST(EvaluationHook, WantsAFunctionAndSteps) {
  EXPECT_THROW(EvaluationHook({}), InvalidArgumentError);
  EXPECT_THROW(EvaluationHook({.evaluate = [](Session&) { return std::map<std::string, double>(); },
                               .every_n_steps = 0}),
               InvalidArgumentError);
}

TEST(EarlyStoppingHook, StopsWhereNothingGetsBetter) {
  CountingGraph model;
  const auto evaluation = losses(model, {3, 2, 2.5, 2.5, 1});  // best at step 4, no better at 6 and 8
  EXPECT_EQ(trained(model, {evaluation,
                            std::make_shared<EarlyStoppingHook>(
                                evaluation, EarlyStoppingHookOptions{.max_steps_without_improvement = 4})}),
            8);
}

TEST(EarlyStoppingHook, NamesAMetricThatIsNotThere) {
  CountingGraph model;
  const auto evaluation = losses(model, {3});
  const auto stop =
      std::make_shared<EarlyStoppingHook>(evaluation, EarlyStoppingHookOptions{.metric = {.metric = "f1"}});
  EXPECT_THAT(
      [&] {
        trained(model, {evaluation, stop});
      },
      ThrowsMessage<NotFoundError>(HasSubstr("the evaluation at step 2 has no metric \"f1\"")));
}

TEST(BestCheckpointHook, KeepsTheBest) {
  CountingGraph model;
  const TemporaryDirectory folder;
  const auto evaluation = losses(model, {3, 2, 2.5, 1, 4});
  trained(model, {evaluation, std::make_shared<BestCheckpointHook>(
                                  evaluation, BestCheckpointOptions{.checkpoint_dir = folder.path()})});
  EXPECT_THAT(list_checkpoints(folder.path()), ElementsAre("best.ckpt-8"));
  Session session(model.graph);
  Saver(model.graph).restore(session, folder.path() + "/best.ckpt-8");
  EXPECT_EQ(model.global_step(session), 8);
}

}  // namespace
}  // namespace kolo
