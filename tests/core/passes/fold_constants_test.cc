#include <gmock/gmock.h>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/passes/placed_step.h"

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct FoldConstants : ::testing::Test {
  static StepGraph folded(const std::vector<Fetch>& fetches,
                          const std::vector<std::pair<Output, Shape>>& fed = {}) {
    return after("fold_constants", fetches, fed);
  }
  Graph graph;
  Scope s{graph};
  const Output two = constant(s.named("two"), 2.0f), three = constant(s.named("three"), 3.0f);
};

TEST_F(FoldConstants, ComputesWhatDependsOnConstantsAlone) {
  const StepGraph step = folded({neg(s.named("y"), mul(s, two, three))});
  EXPECT_THAT(ops_of(step), ElementsAre("Const"));
  EXPECT_EQ(node_named(step, "y").attrs.at("value").get<Tensor>().value<float>(), -6);
}

TEST_F(FoldConstants, ComputesNodesWithoutInputsAndSeesThroughReshapes) {
  const StepGraph step = folded({square(s.named("y"), reshape(s, fill(s, DType::f32, {2, 3}, 4), {3, 2}))});
  EXPECT_THAT(ops_of(step), ElementsAre("Const"));
  const Tensor y = node_named(step, "y").attrs.at("value").get<Tensor>();
  EXPECT_EQ(y.shape(), Shape({3, 2}));
  EXPECT_EQ(y.data<float>()[5], 16);
}

TEST_F(FoldConstants, StopsAtFedValues) {
  const Output product = mul(s, two, three);
  EXPECT_THAT(ops_of(folded({neg(s, product)}, {{product, Shape()}})), ElementsAre("Feed", "Neg"));
}

TEST_F(FoldConstants, LeavesRandomNumbersAndVariables) {
  const Variable v(s, two);
  const Output sum = add(s, v.read(), random_uniform(s, DType::f32, {}, 0, 1));
  EXPECT_THAT(ops_of(folded({sum})), ElementsAre("Variable", "Identity", "RandomUniform", "Add"));
}

TEST_F(FoldConstants, LeavesWhatWouldTakeMoreThanAMebibyte) {
  EXPECT_THAT(ops_of(folded({neg(s, fill(s, DType::f32, {1 << 18}, 1))})), ElementsAre("Const"));
  EXPECT_THAT(ops_of(folded({neg(s, fill(s, DType::f32, {(1 << 18) + 1}, 1))})), ElementsAre("Fill", "Neg"));
}

TEST_F(FoldConstants, KeepsTheControlInputsOfWhatItFolds) {
  const Variable v(s.named("v"), two);
  const Operation update = assign_add(s.named("update"), v, three).node;
  const StepGraph step = folded({neg(s.control_dependencies({update}).named("y"), two)});
  EXPECT_EQ(node_named(step, "y").schema->name(), "Const");
  EXPECT_THAT(control_inputs_of(step, "y"), ElementsAre("update"));
}

TEST_F(FoldConstants, LeavesReadersOfAConstantThatWaits) {
  const Operation first = no_op(s.named("first"));
  const Output late = constant(s.control_dependencies({first}).named("late"), 1.0f);
  EXPECT_EQ(node_named(folded({neg(s.named("y"), late)}), "y").schema->name(), "Neg");
}

TEST_F(FoldConstants, LeavesAnErrorToTheStepThatReachesIt) {
  const Output one = constant(s, Tensor::scalar<std::int32_t>(1));
  const Output zero = constant(s, Tensor::scalar<std::int32_t>(0));
  const Output bad = div(s.named("bad"), one, zero);
  EXPECT_EQ(node_named(folded({bad}), "bad").schema->name(), "Div");
  Session session(graph);
  EXPECT_THAT([&] { session.run(bad); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("[node \"bad\"")));
}

TEST_F(FoldConstants, GivesFetchesTheirValue) {
  const Output y = mul(s, two, three);
  Session session(graph);
  EXPECT_EQ(session.run(y).value<float>(), 6);
  EXPECT_EQ(session.run(y, {{two, Tensor::scalar(5.0f)}}).value<float>(), 15);
}

}  // namespace
}  // namespace kolo
