#include <kolo/core/passes/pipeline.h>

#include <gmock/gmock.h>

#include <algorithm>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/debugging.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/training.h>
#include <kolo/core/passes/memory.h>

#include "tests/core/passes/step_for.h"

namespace kolo {
namespace {

using kolo::testing::step_for;

constexpr std::int64_t kElements = 65536;
constexpr std::size_t kBytes = kElements * 4;

// Two gradients, made one after the other; then, as optimizers do, the learning rate and the updates.
struct UpdateEarly : ::testing::Test {
  Output gradient(const char* name) { return fill(s.named(name), DType::f32, {kElements}, 1); }
  Operation update(const char* name, const Variable& v, Output of) {
    return apply_update(s.named(name),
                        {.rule = "GradientDescent", .variable = v, .slots = {}, .scalars = {rate()}}, of);
  }
  Output rate() { return neg(s.named("rate"), constant(s, -0.5f)); }

  static int position(const StepGraph& step, const std::string& name) {
    const auto order = topological_order(step);
    const auto at =
        std::find_if(order.begin(), order.end(), [&](int n) { return step.nodes[n].name == name; });
    return static_cast<int>(at - order.begin());
  }
  static std::size_t planned_bytes(StepGraph step) {
    return plan_memory(step, topological_order(step), std::vector<std::size_t>(step.nodes.size()))
        .arena_bytes;
  }
  static StepValue output_of(const StepGraph& step, const std::string& name) {
    for (int n = 0; n < static_cast<int>(step.nodes.size()); ++n)
      if (step.nodes[n].name == name) return {n, 0};
    throw NotFoundError("no node {}", name);
  }

  Graph graph;
  Scope s{graph};
  Variable a{s.named("a"), zeros(s, DType::f32, {kElements})},
      b{s.named("b"), zeros(s, DType::f32, {kElements})};
};

TEST_F(UpdateEarly, FollowsItsGradientAndTheNextTakesItsMemory) {
  const Output first = gradient("first"), second = gradient("second");
  StepGraph step = step_for({update("of_a", a, first), update("of_b", b, second)});
  order_updates(step);
  EXPECT_GE(planned_bytes(step), 2 * kBytes);
  update_early(step);
  EXPECT_LT(position(step, "of_a"), position(step, "second"));
  EXPECT_LT(planned_bytes(step), 2 * kBytes);
}

TEST_F(UpdateEarly, StaysBehindChecksThatWereMadeBeforeIt) {
  const Output first = gradient("first"), second = gradient("second");
  const Output checked = check_numerics(s.named("check"), second, "no number");
  const Operation of_a = update("of_a", a, first), of_b = update("of_b", b, checked);
  const Output later = check_numerics(s.named("later"), gradient("third"), "no number");
  StepGraph step = step_for({of_a, of_b, Operation(later.node)});
  order_updates(step);
  update_early(step);
  EXPECT_GT(position(step, "of_a"), position(step, "check"));
  EXPECT_LT(position(step, "of_a"), position(step, "third"));
}

TEST_F(UpdateEarly, DoesNotWaitForTheCheckOfALoss) {
  const Output first = gradient("first"), second = gradient("second");
  const Output loss = check_numerics(s.named("check"), reduce_mean(s.named("loss"), first), "no number");
  StepGraph step = step_for({Operation(loss.node), update("of_a", a, first), update("of_b", b, second)});
  order_updates(step);
  update_early(step);
  EXPECT_GT(position(step, "of_a"), position(step, "check"));
  EXPECT_LT(position(step, "of_a"), position(step, "second"));
}

TEST_F(UpdateEarly, WaitsForWhatReadsTheVariableBefore) {
  const Output first = gradient("first"), second = gradient("second");
  const Output reader = add(s.named("reader"), a.read(), second);
  StepGraph step =
      step_for({Operation(reader.node), update("of_a", a, first), update("of_b", b, gradient("last"))});
  order_updates(step);
  update_early(step);
  EXPECT_GT(position(step, "of_a"), position(step, "reader"));
  EXPECT_LT(position(step, "of_a"), position(step, "last"));
}

TEST_F(UpdateEarly, WaitsForANumberOfAllGradients) {
  const Output first = gradient("first"), second = gradient("second");
  const Output both = add(s.named("both"), first, second);
  StepGraph step = step_for({update("of_a", a, mul(s, first, both)), update("of_b", b, second)});
  order_updates(step);
  update_early(step);
  EXPECT_GT(position(step, "of_a"), position(step, "both"));
}

TEST_F(UpdateEarly, LeavesUpdatesOfGradientsInMemoryOfAReduction) {
  const Output first = gradient("first"), second = gradient("second");
  StepGraph step = step_for({update("of_a", a, first), update("of_b", b, second)});
  step.placements[output_of(step, "first")] = {};
  order_updates(step);
  update_early(step);
  EXPECT_GT(position(step, "of_a"), position(step, "second"));
}

}  // namespace
}  // namespace kolo
