#include <kolo/core/passes/update_guards.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/debugging.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/passes/step_for.h"

namespace kolo {
namespace {

using kolo::testing::step_for;
using ::testing::Contains;
using ::testing::Not;

// Updates of "a" and "b"; the guard, made last, looks at what the update of "a" gives.
class UpdateGuards : public ::testing::Test {
 protected:
  UpdateGuards() { graph_.add_to_collection(kUpdateGuards, *guard_.node); }
  int number_of(const StepGraph& step, const Node* node) const {
    const auto at = std::find_if(step.nodes.begin(), step.nodes.end(),
                                 [&](const StepNode& candidate) { return candidate.origin == node; });
    return at == step.nodes.end() ? -1 : static_cast<int>(at - step.nodes.begin());
  }

  Graph graph_;
  Scope s_{graph_};
  Variable a_{s_.named("a"), constant(s_, 1.0f)}, b_{s_.named("b"), constant(s_, 1.0f)};
  Output x_ = placeholder(s_, DType::f32, {});
  Output update_a_ = assign_add(s_, a_, x_), update_b_ = assign_add(s_, b_, x_);
  Operation guard_ = check_numerics(s_, add(s_, update_a_, x_), "checked");
};

TEST_F(UpdateGuards, ComeBeforeTheUpdatesThatTheyDoNotNeed) {
  StepGraph step = step_for({update_a_, update_b_, guard_}, {{x_, Shape()}});
  guard_updates(step);
  const int guard = number_of(step, guard_.node);
  EXPECT_THAT(step.nodes[number_of(step, update_b_.node)].after, Contains(guard));
  EXPECT_THAT(step.nodes[number_of(step, update_a_.node)].after, Not(Contains(guard)));
}

TEST_F(UpdateGuards, RunAsSoonAsTheirInputsAreThere) {
  StepGraph step = step_for({update_a_, update_b_, guard_}, {{x_, Shape()}});
  guard_updates(step);
  const StepNode& guard = step.nodes[number_of(step, guard_.node)];
  EXPECT_GT(guard.order, step.nodes[guard.inputs[0].node].order);
  EXPECT_LT(guard.order, step.nodes[guard.inputs[0].node].order + kOrderStep);
}

TEST_F(UpdateGuards, ChangeNothingInAStepThatRunsNone) {
  StepGraph step = step_for({update_a_, update_b_}, {{x_, Shape()}});
  guard_updates(step);
  for (const StepNode& node : step.nodes) EXPECT_TRUE(node.after.empty()) << node.name;
}

TEST_F(UpdateGuards, KeepTheVariablesAsTheyAreWhereTheyThrow) {
  const Operation initializer = global_variables_initializer(s_);
  Session session(graph_, {.inter_op_parallelism_threads = 1});
  session.run(initializer);
  const std::vector<Fetch> step{Operation(update_b_), guard_};
  EXPECT_THROW(session.run(step, {{x_, Tensor::scalar(std::nanf(""))}}), InvalidArgumentError);
  EXPECT_EQ(session.run(b_.read()).value<float>(), 1);
}

}  // namespace
}  // namespace kolo
