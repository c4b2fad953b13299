#include <kolo/core/graph/inference_form.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/variable.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/test_ops.h"

namespace kolo {
namespace {

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

}  // namespace
}  // namespace kolo
