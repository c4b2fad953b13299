#include <gmock/gmock.h>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/passes/placed_step.h"

namespace kolo {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

struct Simplify : ::testing::Test {
  // What "end", a reader of `value`, reads after the pass.
  std::string read_for(Output value) {
    const Output end = exp(s.named("end"), value);
    return input_of(after("simplify", {end}), end.node->name());
  }
  Output number(float value) { return constant(s, value); }

  Graph graph;
  Scope s{graph};
  const Output x = placeholder(s.named("x"), DType::f32, {2, 3});
};

TEST_F(Simplify, DropsFactorsAndDivisorsOfOne) {
  EXPECT_EQ(read_for(mul(s, x, number(1))), "x");
  EXPECT_EQ(read_for(mul(s, ones(s, DType::f32, {2, 3}), x)), "x");
  EXPECT_EQ(read_for(div(s, x, number(1))), "x");
}

TEST_F(Simplify, KeepsAProductThatIsBroadcast) {
  EXPECT_EQ(read_for(mul(s.named("p"), x, ones(s, DType::f32, {4, 2, 3}))), "p");
}

TEST_F(Simplify, DropsTheZerosThatChangeNoBit) {
  EXPECT_EQ(read_for(sub(s, x, number(0.0f))), "x");
  EXPECT_EQ(read_for(add(s, x, number(-0.0f))), "x");
  EXPECT_EQ(read_for(add(s, number(-0.0f), x)), "x");
  EXPECT_EQ(read_for(add(s.named("a"), x, number(0.0f))), "a");   // −0 + 0 is 0
  EXPECT_EQ(read_for(sub(s.named("b"), x, number(-0.0f))), "b");  // −0 − −0 is 0
  EXPECT_EQ(read_for(mul(s.named("c"), x, number(0.0f))), "c");   // NaN · 0 is NaN
}

TEST_F(Simplify, DropsZerosOfWholeNumbers) {
  const Output i = placeholder(s.named("i"), DType::i32, {2});
  const Output zero = constant(s, Tensor::scalar<std::int32_t>(0));
  const Output end = neg(s.named("end"), add(s, i, zero));
  EXPECT_EQ(input_of(after("simplify", {end}), "end"), "i");
}

TEST_F(Simplify, DropsDoubleNegations) { EXPECT_EQ(read_for(neg(s, neg(s, x))), "x"); }

TEST_F(Simplify, DropsRepeatedRectifiers) {
  EXPECT_EQ(read_for(relu(s, relu(s.named("r"), x))), "r");
  EXPECT_EQ(read_for(abs(s, abs(s.named("m"), x))), "m");
}

TEST_F(Simplify, DropsIdentitiesAndSumsOfOne) {
  EXPECT_EQ(read_for(identity(s, stop_gradient(s, identity(s, x)))), "x");
  EXPECT_EQ(read_for(add_n(s, {x})), "x");
}

TEST_F(Simplify, KeepsTheReadOfAVariableThatFindsItUninitialized) {
  const Variable v(s.named("v"), zeros(s, DType::f32, {}));
  EXPECT_EQ(read_for(identity(s, v.read())), "v/read");
}

TEST_F(Simplify, DropsTransposesThatCancelAndJoinsOthers) {
  const Output t = placeholder(s.named("t"), DType::f32, {2, 3, 4});
  EXPECT_EQ(read_for(transpose(s, transpose(s, t, {2, 0, 1}), {1, 2, 0})), "t");
  const StepGraph step = after("simplify", {transpose(s.named("y"), transpose(s, t, {2, 0, 1}), {2, 1, 0})});
  EXPECT_EQ(input_of(step, "y"), "t");
  EXPECT_EQ(node_named(step, "y").attrs.at("perm").get<std::vector<std::int64_t>>(),
            (std::vector<std::int64_t>{1, 0, 2}));
}

TEST_F(Simplify, ReshapesOnceAndForgetsTheModel) {
  const Output like = exp(s.named("like"), placeholder(s, DType::f32, {6}));
  const StepGraph step = after("simplify", {reshape_like(s.named("y"), reshape(s, x, {3, 2}), like)});
  EXPECT_EQ(input_of(step, "y"), "x");
  EXPECT_EQ(node_named(step, "y").inputs.size(), 1u);
  EXPECT_THAT(ops_of(step), Not(Contains("Exp")));
  EXPECT_EQ(read_for(reshape(s, reshape(s, x, {6}), {2, 3})), "x");
}

TEST_F(Simplify, KeepsWhatWaitsForSomething) {
  const Operation first = no_op(s.named("first"));
  EXPECT_EQ(read_for(identity(s.control_dependencies({first}).named("waits"), x)), "waits");
  EXPECT_EQ(read_for(neg(s.named("outer"), neg(s.control_dependencies({first}), x))), "outer");
}

TEST_F(Simplify, KeepsValuesOfAVariableThatTheStepChanges) {
  const Variable v(s, zeros(s, DType::f32, {}));
  const Output old = mul(s.named("old"), v.ref(), number(1));
  const Operation update = assign_add(s, v, number(1));
  const Output end = neg(s.control_dependencies({update}).named("end"), old);
  EXPECT_EQ(input_of(after("simplify", {end}), "end"), "old");
  Session session(graph);
  session.run(v.initializer());
  EXPECT_EQ(session.run(end).value<float>(), 0);
}

TEST_F(Simplify, FetchesWhatWasAskedFor) {
  const Output y = neg(s.named("y"), neg(s, x));
  const StepGraph step = after("simplify", {y});
  EXPECT_EQ(step.nodes[step.fetches[0].node].name, "y");
}

TEST_F(Simplify, KeepsFedValues) {
  const Output middle = identity(s, x), end = exp(s.named("end"), middle);
  const StepGraph step = after("simplify", {end}, {{middle, Shape({2, 3})}});
  EXPECT_THAT(ops_of(step), ElementsAre("Feed", "Exp"));
}

}  // namespace
}  // namespace kolo
