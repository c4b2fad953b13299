#include <kolo/core/training/hooks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/training/monitored_session.h>

#include "tests/core/training/counting_graph.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::ThrowsMessage;

TEST(FeedFnHook, FeedsWhatItsFunctionReturnsBeforeEachRun) {
  CountingGraph model;
  const Output x = placeholder(model.s, DType::f32, {}), y = identity(model.s, x);
  float next = 0;
  const auto hook = std::make_shared<FeedFnHook>([&] { return Feeds{{x, Tensor::scalar(++next)}}; });
  MonitoredTrainingSession sess(model.graph, {.hooks = {hook}});
  EXPECT_EQ(sess.run(y).value<float>(), 1);
  EXPECT_EQ(sess.run(y).value<float>(), 2);
  EXPECT_THAT(
      [&] {
        sess.run(y, {{x, Tensor::scalar(5.0f)}});
      },
      ThrowsMessage<FailedPreconditionError>("Same tensor is fed by a SessionRunHook and user."));
}

TEST(FeedFnHook, WantsAFunction) { EXPECT_THROW(FeedFnHook({}), InvalidArgumentError); }

TEST(GlobalStepWaiterHook, NeverWaitsForStepZero) {
  CountingGraph model;
  MonitoredTrainingSession sess(model.graph, {.hooks = {std::make_shared<GlobalStepWaiterHook>(0)}});
  EXPECT_EQ(sess.run(model.count).value<std::int64_t>(), 1);
}

TEST(FinalOpsHook, KeepsTheValuesOfTheEnd) {
  CountingGraph model;
  const auto hook = std::make_shared<FinalOpsHook>(std::vector<Fetch>{model.w.read()});
  {
    MonitoredTrainingSession sess(model.graph, {.hooks = {hook}});
    sess.run(model.train);
    EXPECT_THAT(hook->final_ops_values(), IsEmpty());
  }
  ASSERT_EQ(hook->final_ops_values().size(), 1u);
  EXPECT_THAT(hook->final_ops_values()[0].span<float>(), ElementsAre(11, 21));
}

}  // namespace
}  // namespace kolo
