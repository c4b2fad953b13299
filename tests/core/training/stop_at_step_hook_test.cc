#include <kolo/core/training/hooks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

#include "tests/core/training/counting_graph.h"

namespace kolo {
namespace {

using testing::ThrowsMessage;

TEST(StopAtStepHook, TakesExactlyOneOfLastStepAndNumSteps) {
  EXPECT_THROW(StopAtStepHook(StopAtStepOptions{}), InvalidArgumentError);
  EXPECT_THROW(StopAtStepHook(StopAtStepOptions{.num_steps = 1, .last_step = 1}), InvalidArgumentError);
}

TEST(StopAtStepHook, WantsAGlobalStep) {
  Graph graph;
  EXPECT_THAT([&] { StopAtStepHook(3).begin(graph); },
              ThrowsMessage<FailedPreconditionError>("Global step should be created to use StopAtStepHook."));
}

// The step after which to stop is announced before it runs, so that it travels with that step's own
// reductions.
TEST(StopAtStepHook, AnnouncesTheLastStepBeforeAndAsksForTheStopAfterIt) {
  CountingGraph model;
  StopAtStepHook hook(3);
  hook.begin(model.graph);
  Session session(model.graph);
  session.run(global_variables_initializer(model.s));
  hook.after_create_session(session);
  const SessionRunArgs args;
  for (int step = 1; step <= 3; ++step) {
    RunContext context(session, args, step - 1);
    hook.before_run(context);
    EXPECT_EQ(context.last_step_announced(), step == 3);
    EXPECT_FALSE(context.stop_requested());
    session.run(model.train);
    context.set_global_step(step);
    hook.after_run(context, {});
    EXPECT_EQ(context.stop_requested(), step == 3);
  }
}

TEST(StopAtStepHook, DoesNotStopAfterARunThatMakesNoStep) {
  CountingGraph model;
  StopAtStepHook hook(1);
  hook.begin(model.graph);
  Session session(model.graph);
  session.run(global_variables_initializer(model.s));
  const SessionRunArgs args;
  RunContext context(session, args, 0);
  hook.before_run(context);
  session.run(model.w.read());
  hook.after_run(context, {});
  EXPECT_FALSE(context.stop_requested());
}

}  // namespace
}  // namespace kolo
