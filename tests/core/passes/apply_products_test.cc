#include <kolo/core/passes/pipeline.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/training.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/gradient_check.h"
#include "tests/core/passes/step_for.h"

namespace kolo {
namespace {

using kolo::testing::step_for;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::Not;

constexpr std::int64_t kInputs = 1030, kOutputs = 1024;  // parts of 64 rows, and a rest

struct ApplyProducts : ::testing::Test {
  Tensor numbers(const Shape& shape) {
    return detail::converted<double>(test_numbers(shape, ++salt), DType::f32);
  }
  Output factor(const char* name, std::int64_t rows, std::int64_t columns) {
    return constant(s.named(name), numbers({rows, columns}));
  }
  Output gradient(std::int64_t rows = 4) {
    return matmul(s, factor("x", rows, kInputs), factor("dy", rows, kOutputs), {.transpose_a = true});
  }
  Variable weights(const char* name) { return {s.named(name), factor("initial", kInputs, kOutputs)}; }

  // Slots and scalars are what a rule can compute with: positive numbers below 1.
  Operation update(const UpdateRuleOps& rule, const Variable& v, Output of) {
    VariableUpdate update{.rule = rule.name, .variable = v, .slots = {}, .scalars = {}};
    for (const std::string& slot : rule.slots)
      update.slots.emplace_back(s.named(v.name() + "_" + slot), fill(s, DType::f32, v.shape(), 0.25));
    for (std::size_t i = 0; i < rule.scalars.size(); ++i)
      update.scalars.push_back(constant(s, 0.5f - 0.03125f * static_cast<float>(i)));
    const Operation done = apply_update(s, update, of);
    variables.push_back(v);
    variables.insert(variables.end(), update.slots.begin(), update.slots.end());
    return done;
  }
  Operation momentum(const Variable& v, Output of) {
    return update(*find_update_rule("ApplyMomentum"), v, of);
  }

  static std::vector<std::string> ops_behind(StepGraph step) {
    for (StepNode& node : step.nodes) node.device = "/job:localhost/replica:0/task:0/device:CPU:0";
    apply_products(step);
    std::vector<std::string> ops;
    for (const StepNode& node : step.nodes) ops.push_back(node.schema->name());
    return ops;
  }
  // The variables and their slots behind `step`.
  std::vector<Tensor> variables_after(const std::vector<Fetch>& step, int threads) {
    Session session(graph, {.intra_op_parallelism_threads = threads, .inter_op_parallelism_threads = 1});
    session.run(global_variables_initializer(s));
    session.run(step);
    std::vector<Fetch> reads;
    for (const Variable& variable : variables) reads.push_back(variable.read());
    return session.run(reads);
  }

  Graph graph;
  Scope s{graph};
  std::vector<Variable> variables;
  int salt = 0;
};

TEST_F(ApplyProducts, TheUpdateComputesItsGradient) {
  const auto ops = ops_behind(step_for({momentum(weights("v"), gradient())}));
  EXPECT_THAT(ops, Contains("ApplyMomentumOfProduct"));
  EXPECT_THAT(ops, Not(Contains(AnyOf("MatMul", "ApplyMomentum"))));
}

// A gradient that is fetched stays a node of its own.
TEST_F(ApplyProducts, VariablesAndSlotsOfAllRulesGetTheBitsOfSeparateNodes) {
  std::int64_t rows = 0;
  for (const UpdateRuleOps& rule : update_rules()) {
    rows = rows % 8 + 1;
    SCOPED_TRACE(rule.name + " of rows: " + std::to_string(rows));
    variables.clear();
    const Output of = gradient(rows);
    const Operation step = update(rule, weights("v"), of);
    EXPECT_THAT(ops_behind(step_for({step})), Contains("Apply" + rule.name + "OfProduct"));
    const auto together = variables_after({step}, 2), apart = variables_after({step, of}, 1);
    for (std::size_t i = 0; i < together.size(); ++i)
      EXPECT_EQ(std::memcmp(together[i].raw(), apart[i].raw(), together[i].bytes()), 0) << "variable " << i;
  }
}

TEST_F(ApplyProducts, LeavesGradientsThatAreReadElsewhereOrWaitedFor) {
  const Output of = gradient();
  const Operation step = momentum(weights("v"), of);
  const Output other = square(s, of);
  EXPECT_THAT(ops_behind(step_for({step, Operation(other.node)})), Contains("ApplyMomentum"));
  const Output behind = identity(s.control_dependencies({Operation(of.node)}), constant(s, 1.0f));
  EXPECT_THAT(ops_behind(step_for({step, Operation(behind.node)})), Contains("ApplyMomentum"));
}

TEST_F(ApplyProducts, WhatOnlyWaitsForTheGradientWaitsForTheUpdate) {
  const Output of = gradient();
  const Operation step = momentum(weights("v"), of);
  const Operation behind = no_op(s.control_dependencies({Operation(of.node)}));
  EXPECT_THAT(ops_behind(step_for({step, behind})), Contains("ApplyMomentumOfProduct"));
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run({step, behind});
}

TEST_F(ApplyProducts, LeavesProductsOfManyRowsAndOtherProducts) {
  EXPECT_THAT(ops_behind(step_for({momentum(weights("a"), gradient(9))})), Contains("MatMul"));
  const Output plain = matmul(s, factor("x", kInputs, 4), factor("dy", 4, kOutputs));
  EXPECT_THAT(ops_behind(step_for({momentum(weights("b"), plain)})), Contains("MatMul"));
}

TEST_F(ApplyProducts, LeavesGradientsInMemoryOfAReduction) {
  StepGraph step = step_for({momentum(weights("v"), gradient())});
  for (int n = 0; n < static_cast<int>(step.nodes.size()); ++n)
    if (step.nodes[n].schema->name() == "MatMul") step.placements[{n, 0}] = {};
  EXPECT_THAT(ops_behind(std::move(step)), Contains("MatMul"));
}

TEST_F(ApplyProducts, LeavesFactorsThatTheUpdateOrAnEarlierOneChanges) {
  const Variable x(s.named("factor"), factor("initial_factor", 4, kInputs));
  const Output of = matmul(s, x.read(), factor("dy", 4, kOutputs), {.transpose_a = true});
  const Operation before = assign_add(s, x, factor("more", 4, kInputs)), step = momentum(weights("v"), of);
  EXPECT_THAT(ops_behind(step_for({before, step})), Contains("MatMul"));
  EXPECT_THAT(ops_behind(step_for({step})), Not(Contains("MatMul")));
}

}  // namespace
}  // namespace kolo
