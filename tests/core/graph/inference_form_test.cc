#include <kolo/core/graph/inference_form.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/loop_nodes.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/counted_loop.h"
#include "tests/core/test_ops.h"

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Training doubles its input, inference hands it on.
const RegisterOp doubling_op(OpSchema("TestDoubling").input("x", {DType::f32}).output("y"));
const RegisterKernel doubling_kernel("TestDoubling", "CPU", {DType::f32}, [](KernelContext& c) {
  for (std::int64_t i = 0; i < c.output(0).elements(); ++i)
    c.output(0).data<float>()[i] = 2 * c.input(0).data<float>()[i];
});
const RegisterInferenceForm doubling_form("TestDoubling",
                                          [](const Scope&, const Node&, const Outputs& in) { return in; });

Output doubled(const Scope& s, Output x) { return s.add("TestDoubling", {x}); }

TEST(InferenceForm, ReplacesWhatActsInTrainingOnly) {
  Graph graph;
  Scope s(graph);
  const Output x = constant(s, 3.0f);
  const Output y = testing::add(s, doubled(s, testing::add(s, doubled(s, x), x)), x);
  const Output inference = inference_form(s, y);
  Session session(graph);
  EXPECT_EQ(session.run(y).value<float>(), 21);
  EXPECT_EQ(session.run(inference).value<float>(), 9);
}

TEST(InferenceForm, IsTheSameTensorWhereNothingIsReplaced) {
  Graph graph;
  Scope s(graph);
  const Output x = constant(s, 3.0f), y = testing::add(s, x, x);
  doubled(s, y);
  EXPECT_EQ(inference_form(s, y), y);
}

TEST(InferenceForm, SharesVariablesAndNamesItsNodesAfterTheirs) {
  Graph graph;
  Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  const Output y = testing::add(s.name_scope("layer").named("sum"), doubled(s, v), v);
  const Output inference = inference_form(s, y);
  EXPECT_EQ(inference.node->name(), "inference/layer/sum");
  EXPECT_EQ(inference.node->input(1), y.node->input(1));
  EXPECT_EQ(global_variables(graph).size(), 1u);
}

TEST(InferenceForm, KeepsDevices) {
  Graph graph;
  Scope s(graph);
  const Output y = testing::add(s.device("/cpu:0"), doubled(s, constant(s, 1.0f)), constant(s, 1.0f));
  EXPECT_EQ(inference_form(s, y).node->requested_device(), y.node->requested_device());
}

TEST(InferenceForm, RefusesToBuildAnUpdateTwice) {
  Graph graph;
  Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  const Output y = assign(s.named("store"), v, doubled(s, constant(s, 1.0f)));
  EXPECT_THAT([&] { inference_form(s, y); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("store")));
}

TEST(InferenceForm, ConvertsTheBodyOfALoop) {
  Graph graph;
  Scope s(graph);
  const auto number = [](const Scope& at, double value) { return fill(at, DType::f32, Shape{}, value); };
  const Output outside = doubled(s, number(s, 1));
  const Outputs finals = while_loop(
      s, [&](const Scope& c, const Outputs& v) { return less(c, v[0], number(c, 3)); },
      [&](const Scope& b, const Outputs& v) {
        return Outputs{add(b, v[0], number(b, 1)), doubled(b, add(b, v[1], outside))};
      },
      {number(s, 0), number(s, 0)});
  const Output inference = inference_form(s, mul(s, finals[1], number(s, 10)));
  Session session(graph);
  EXPECT_EQ(session.run(finals[1]).value<float>(), ((0 + 2) * 2 + 2) * 2 * 2 + 4);
  EXPECT_EQ(session.run(inference).value<float>(), 30);
}

TEST(InferenceForm, ConvertsALoopInTheBodyOfALoop) {
  Graph graph;
  Scope s(graph);
  const Output count = testing::counted_loop(s, 2, [&](const Scope& outer) -> Operation {
    return testing::counted_loop(
        outer, 3, [&](const Scope& b) -> Operation { return doubled(b, fill(b, DType::f32, Shape{}, 1)); });
  });
  const auto inside = nodes_in_loop(*inference_form(s, count).node);
  EXPECT_TRUE(std::none_of(inside.begin(), inside.end(),
                           [](const Node* node) { return node->op() == "TestDoubling"; }));
}

TEST(InferenceForm, RefusesALoopThatUpdatesAVariable) {
  Graph graph;
  Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  const Output count = testing::counted_loop(s, 2, [&](const Scope& b) -> Operation {
    return assign_add(b.named("store"), v, doubled(b, fill(b, DType::f32, Shape{}, 1)));
  });
  EXPECT_THAT([&] { inference_form(s, count); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("store")));
}

TEST(InferenceForm, WaitsForWhatTheTrainingFormWaitsFor) {
  Graph graph;
  Scope s(graph);
  const Output x = constant(s, 3.0f);
  const Operation first = no_op(s.named("first"));
  const Output y = testing::add(s.control_dependencies({first}), doubled(s, x), x);
  EXPECT_THAT(inference_form(s, y).node->control_inputs(), ElementsAre(first.node));
}

TEST(InferenceForm, WaitsForTheInferenceFormOfWhatTheTrainingFormWaitsFor) {
  Graph graph;
  Scope s(graph);
  const Output x = constant(s, 3.0f);
  const Output before = testing::add(s.named("before"), doubled(s, x), x);
  const Output y = testing::add(s.control_dependencies({before}), x, x);
  const auto waits = inference_form(s, y).node->control_inputs();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0]->name(), "inference/before");
}

TEST(InferenceForm, TakesTheBranchOfItsOwnCondition) {
  Graph graph;
  Scope s(graph);
  const Output x = constant(s, 3.0f);
  const Output pred = less(s, doubled(s, x), constant(s, 5.0f));  // 6 in training, 3 in inference
  const Output y = cond(
      s, pred, [&](const Scope& b) { return Outputs{constant(b, 1.0f)}; },
      [&](const Scope& b) { return Outputs{constant(b, 2.0f)}; })[0];
  const Output inference = inference_form(s, y);
  Session session(graph);
  EXPECT_EQ(session.run(y).value<float>(), 2);
  EXPECT_EQ(session.run(inference).value<float>(), 1);
}

}  // namespace
}  // namespace kolo
