#include <kolo/optimizer/optimizer.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/math.h>
#include <kolo/optimizer/rules.h>

#include "tests/optimizer/small_training.h"

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAre;

class OptimizerTest : public ::testing::Test {
 protected:
  Variable variable(const std::string& name, std::initializer_list<float> values,
                    VariableOptions options = {}) {
    const Shape shape({static_cast<std::int64_t>(values.size())});
    return Variable(s.named(name), constant(s, Tensor::of<float>(shape, values)), options);
  }
  std::vector<std::string> names(const std::vector<Variable>& variables) {
    std::vector<std::string> found;
    for (const Variable& variable : variables) found.push_back(variable.name());
    return found;
  }

  Graph graph;
  Scope s{graph};
};

TEST_F(OptimizerTest, MinimizeDescendsTheLossAndCountsTheStep) {
  const Variable v = variable("v", {3, -1});
  GradientDescentOptimizer optimizer(0.25f);
  const Operation step = optimizer.minimize(s, square(s, v));  // summed: the gradient is 2v
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  EXPECT_THAT(elements<float>(session.run(v.read())), ElementsAre(1.5f, -0.5f));
  EXPECT_EQ(session.run(find_global_step(graph).read()).value<std::int64_t>(), 1);
}

TEST_F(OptimizerTest, CountsOneStepHoweverManyVariablesThereAre) {
  const Variable a = variable("a", {1}), b = variable("b", {2}), c = variable("c", {3});
  AdamOptimizer optimizer;
  const Operation step = optimizer.minimize(s, mul(s, a, mul(s, b, c)));
  Session session(graph);
  session.run(global_variables_initializer(s));
  for (int i = 0; i < 3; ++i) session.run(step);
  EXPECT_EQ(session.run(find_global_step(graph).read()).value<std::int64_t>(), 3);
}

TEST_F(OptimizerTest, CountsInTheGivenGlobalStep) {
  const Variable v = variable("v", {1});
  const Variable mine(s.named("mine"), constant(s, Tensor::scalar<std::int64_t>(5)), {.trainable = false});
  GradientDescentOptimizer optimizer(1.0);
  const Operation step = optimizer.minimize(s, square(s, v), {.global_step = mine});
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  EXPECT_EQ(session.run(mine.read()).value<std::int64_t>(), 6);
  EXPECT_FALSE(find_global_step(graph));
}

TEST_F(OptimizerTest, UpdatesOnlyTheGivenVariables) {
  const Variable a = variable("a", {1}), b = variable("b", {1});
  GradientDescentOptimizer optimizer(1.0);
  const Operation step = optimizer.minimize(s, mul(s, a, b), {.variables = {b}});
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  EXPECT_EQ(session.run(a.read()).value<float>(), 1);
  EXPECT_EQ(session.run(b.read()).value<float>(), 0);
}

TEST_F(OptimizerTest, LeavesAVariableWithoutGradientAlone) {
  const Variable used = variable("used", {1}), unused = variable("unused", {1});
  MomentumOptimizer optimizer(1.0, 0.9);
  const auto pairs = optimizer.compute_gradients(s, square(s, used));
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_TRUE(pairs[0].gradient);
  EXPECT_FALSE(pairs[1].gradient);
  EXPECT_EQ(pairs[1].variable, unused);
  optimizer.apply_gradients(s, pairs);
  EXPECT_FALSE(optimizer.find_slot(unused, "momentum"));
  EXPECT_THAT(names(global_variables(graph)), UnorderedElementsAre("used", "unused", "used/Momentum"));
}

TEST_F(OptimizerTest, NamesSlotsAfterVariableAndOptimizer) {
  const Variable w = Variable(s.name_scope("fc1").named("w"), zeros(s, DType::f32, {2, 3}));
  AdamOptimizer optimizer;
  Scope training = s.name_scope("training");
  optimizer.minimize(training, square(training, w));
  EXPECT_THAT(names(global_variables(graph)),
              UnorderedElementsAre("fc1/w", "fc1/w/Adam", "fc1/w/Adam_1", "beta1_power", "beta2_power",
                                   "global_step"));
  EXPECT_THAT(names(trainable_variables(graph)), ElementsAre("fc1/w"));
  EXPECT_EQ(optimizer.find_slot(w, "m").name(), "fc1/w/Adam");
  EXPECT_EQ(optimizer.find_slot(w, "v").name(), "fc1/w/Adam_1");
  EXPECT_EQ(optimizer.find_slot(w, "m").shape(), Shape({2, 3}));
  EXPECT_THAT(optimizer.find_slot(w, "m").ref().node->colocation_groups(), ElementsAre("loc:@fc1/w"));
}

TEST_F(OptimizerTest, StartsAdagradsAccumulatorAtATenth) {
  const Variable v = variable("v", {1, 2});
  AdagradOptimizer optimizer(0.01f);
  optimizer.minimize(s, square(s, v));
  Session session(graph);
  session.run(global_variables_initializer(s));
  EXPECT_THAT(elements<float>(session.run(optimizer.find_slot(v, "accumulator").read())),
              ElementsAre(0.1f, 0.1f));
}

TEST_F(OptimizerTest, KeepsItsSlotsWhenGradientsAreAppliedInTwoPlaces) {
  const Variable v = variable("v", {1});
  MomentumOptimizer optimizer(1.0, 0.5);
  const GradientPair first = {constant(s, Tensor::of<float>({1}, {1})), v};
  const GradientPair second = {constant(s, Tensor::of<float>({1}, {10})), v};
  const Operation one = optimizer.apply_gradients(s, {&first, 1});
  const Operation ten = optimizer.apply_gradients(s, {&second, 1});
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(one);
  session.run(ten);
  EXPECT_EQ(session.run(optimizer.find_slot(v, "momentum").read()).value<float>(), 10.5f);
}

TEST_F(OptimizerTest, MultipliesAdamsPowersOnceAnUpdate) {
  variable("a", {1});
  variable("b", {2});
  AdamOptimizer optimizer({.beta1 = 0.5, .beta2 = 0.25});
  const auto variables = trainable_variables(graph);
  const Operation step = optimizer.minimize(s, mul(s, variables[0], variables[1]));
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  session.run(step);
  EXPECT_EQ(session.run(graph.find_output("beta1_power/read")).value<float>(), 0.125f);
  EXPECT_EQ(session.run(graph.find_output("beta2_power/read")).value<float>(), 0.015625f);
}

TEST_F(OptimizerTest, NamesEverySlotOfRmsPropAdadeltaAndFtrl) {
  const Variable v = variable("v", {1});
  const GradientPair pair = {constant(s, Tensor::of<float>({1}, {1})), v};
  RMSPropOptimizer rms_prop({.centered = true});
  AdadeltaOptimizer adadelta;
  FtrlOptimizer ftrl;
  for (Optimizer* optimizer : std::vector<Optimizer*>{&rms_prop, &adadelta, &ftrl})
    optimizer->apply_gradients(s, {&pair, 1});
  EXPECT_EQ(rms_prop.find_slot(v, "rms").name(), "v/RMSProp");
  EXPECT_EQ(rms_prop.find_slot(v, "mg").name(), "v/RMSProp_1");
  EXPECT_EQ(rms_prop.find_slot(v, "momentum").name(), "v/RMSProp_2");
  EXPECT_EQ(adadelta.find_slot(v, "accum").name(), "v/Adadelta");
  EXPECT_EQ(adadelta.find_slot(v, "accum_update").name(), "v/Adadelta_1");
  EXPECT_EQ(ftrl.find_slot(v, "accum").name(), "v/Ftrl");
  EXPECT_EQ(ftrl.find_slot(v, "linear").name(), "v/Ftrl_1");
}

// True if `node` waits for `before`, through whatever is between them.
bool waits_for(const Node& node, const Node& before) {
  if (&node == &before) return true;
  for (const Output& in : node.inputs())
    if (waits_for(*in.node, before)) return true;
  for (const Node* control : node.control_inputs())
    if (waits_for(*control, before)) return true;
  return false;
}

TEST_F(OptimizerTest, StartsNoUpdateBeforeAllGradientsBehindTheGateOfTheGraph) {
  const Variable a = variable("a", {2}), b = variable("b", {3});
  GradientDescentOptimizer optimizer(1.0);
  const Output loss = add(s, square(s, a), square(s, b));
  const auto open = optimizer.compute_gradients(s, loss, trainable_variables(graph));
  const auto gated = optimizer.compute_gradients(s, loss, trainable_variables(graph), {.gate = Gate::graph});
  EXPECT_FALSE(waits_for(*open[1].gradient.node, *open[0].gradient.node));
  const Operation step = optimizer.apply_gradients(s, gated);
  const Node* last = gated[0].gradient.node->input(0).node;
  EXPECT_TRUE(waits_for(*gated[1].gradient.node, *last));
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  EXPECT_EQ(session.run(a.read()).value<float>(), -2);
  EXPECT_EQ(session.run(b.read()).value<float>(), -3);
}

TEST_F(OptimizerTest, StartsFromTheGivenGradientOfTheLoss) {
  const Variable v = variable("v", {3});
  GradientDescentOptimizer optimizer(1.0);
  const Operation step = optimizer.minimize(
      s, square(s, v), {.gradients = {.grad_loss = constant(s, Tensor::of<float>({1}, {0.5f}))}});
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  EXPECT_EQ(session.run(v.read()).value<float>(), 0);
}

TEST_F(OptimizerTest, PlacesGradientsWithTheirOpsIfAskedTo) {
  const Variable v = variable("v", {3});
  GradientDescentOptimizer optimizer(1.0);
  const Output loss = square(s.named("loss"), v);
  const auto pairs =
      optimizer.compute_gradients(s, loss, trainable_variables(graph), {.colocate_gradients_with_ops = true});
  EXPECT_THAT(pairs[0].gradient.node->colocation_groups(), ElementsAre("loc:@loss"));
}

TEST_F(OptimizerTest, RefusesToOptimizeNothing) {
  GradientDescentOptimizer optimizer(1.0);
  const Output loss = constant(s, 1.0f);
  const int nodes = graph.num_nodes();
  EXPECT_THAT([&] { optimizer.minimize(s, loss); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("No variables to optimize.")));
  EXPECT_EQ(graph.num_nodes(), nodes);
}

TEST_F(OptimizerTest, RefusesALossThatNoVariableReaches) {
  variable("a", {1});
  variable("b", {1});
  GradientDescentOptimizer optimizer(1.0);
  EXPECT_THAT([&] { optimizer.minimize(s, constant(s.named("far"), 1.0f)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr(
                  "No gradients provided for any variable, check your graph for ops that do not support "
                  "gradients, between variables [\"a\", \"b\"] and loss far:0.")));
}

TEST_F(OptimizerTest, RefusesToApplyNoGradients) {
  GradientDescentOptimizer optimizer(1.0);
  EXPECT_THAT([&] { optimizer.apply_gradients(s, {}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("No variables provided.")));
  const GradientPair absent = {{}, variable("a", {1})};
  EXPECT_THAT(
      [&] {
        optimizer.apply_gradients(s, {&absent, 1});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("No gradients provided for any variable: [\"a\"].")));
}

TEST_F(OptimizerTest, RefusesAGradientOfAnotherShapeAndLeavesTheGraphAsItWas) {
  AdamOptimizer optimizer;
  const GradientPair pair = {constant(s, Tensor::of<float>({3}, {1, 2, 3})), variable("a", {1, 2})};
  const int nodes = graph.num_nodes();
  EXPECT_THAT(
      [&] {
        optimizer.apply_gradients(s, {&pair, 1});
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[3]"), HasSubstr("[2]"), HasSubstr("\"a\""))));
  EXPECT_EQ(graph.num_nodes(), nodes);
}

TEST_F(OptimizerTest, RefusesVariablesAndLossesOfWholeNumbers) {
  const Variable count(s.named("count"), constant(s, Tensor::scalar<std::int32_t>(1)));
  GradientDescentOptimizer optimizer(1.0);
  EXPECT_THAT([&] { optimizer.minimize(s, constant(s, 1.0f)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("variable \"count\" is i32")));
  EXPECT_THAT([&] { optimizer.minimize(s, count); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("is i32")));
}

// The example of rule_optimizer.h.
class SignDescentOptimizer : public RuleOptimizer {
 public:
  explicit SignDescentOptimizer(Hyperparameter rate) : RuleOptimizer("SignDescent"), rate_(rate) {}

 protected:
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override {
    const Output rate = scalar(rate_, variable, "rate");
    return assign_sub(s, variable, mul(s, sign(s, gradient), rate));
  }

 private:
  Hyperparameter rate_;
};

TEST_F(OptimizerTest, TakesARuleOfTheUsersOwn) {
  const Variable v = variable("v", {3, -4});
  SignDescentOptimizer optimizer(0.5);
  const Operation step = optimizer.minimize(s, square(s, v));
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  EXPECT_THAT(elements<float>(session.run(v.read())), ElementsAre(2.5f, -3.5f));
}

}  // namespace
}  // namespace kolo
