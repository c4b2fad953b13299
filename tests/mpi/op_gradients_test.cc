// Every op's gradient where ranks reduce it: its kernel writes into a bucket, or an update reads it in place,
// and each variable moves by the mean of the ranks' gradients, those of one process.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>

#include "tests/core/op_cases/check.h"

namespace kolo::op_cases {

void PrintTo(const Case& tested, std::ostream* to) { *to << tested.name; }

namespace {

struct Values {
  std::vector<Tensor> inputs;
  Tensor weights;  // of the results, in their sum
};

Values random_values(const Case& tested) {
  std::mt19937 bits(7);
  Values values;
  Graph graph;
  Scope s(graph);
  Outputs x;
  for (const Shape& shape : tested.inputs) {
    values.inputs.push_back(random_tensor(shape, bits));
    x.push_back(placeholder(s, DType::f32, shape));
  }
  values.weights = random_tensor(tested.build(s, x).shape(), bits);
  return values;
}

// By index of the input; empty where nothing depends on it.
std::vector<Tensor> gradients_here(const Case& tested, const Values& values) {
  Graph graph;
  Scope s(graph);
  Outputs x;
  for (const Tensor& value : values.inputs) x.push_back(constant(s, value));
  const Output y = tested.build(s, x);
  const Outputs found = gradients(s, {y}, x, {constant(s, values.weights)});
  Session session(graph);
  std::vector<Tensor> tensors;
  for (const Output& gradient : found)
    tensors.push_back(gradient.node != nullptr ? session.run(gradient) : Tensor());
  return tensors;
}

double largest(const Tensor& x) {
  double most = 0;
  for (const float element : x.span<float>()) most = std::max(most, std::abs(static_cast<double>(element)));
  return most;
}

// Rank r weighs the results by 2 (r + 1) / (size + 1), 1 in the mean.
void expect_mean_steps(const Case& tested, bool sharded) {
  const Values values = random_values(tested);
  const std::vector<Tensor> expected = gradients_here(tested, values);
  Graph graph;
  Scope s(graph);
  std::vector<Variable> trained;
  Outputs x;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Output start = constant(s, values.inputs[i]);
    if (!expected[i]) x.push_back(start);
    else x.push_back(trained.emplace_back(s.named("v" + std::to_string(i)), start));
  }
  const Output y = tested.build(s, x);
  const double weight = 2.0 * (rank() + 1) / (size() + 1);
  const Output weights = mul(s, constant(s, values.weights), number_like(s, y, weight));
  DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0F),
                                 {.sparse_as_dense = sharded, .sharded = sharded});
  const Operation step = optimizer.minimize(s, reduce_sum(s, mul(s, y, weights)));
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  auto variable = trained.begin();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!expected[i]) continue;
    const Tensor now = session.run(*variable++);
    const auto before = values.inputs[i].span<float>(), after = now.span<float>(),
               gradient = expected[i].span<float>();
    const double tolerance = 1e-5 * std::max(1.0, largest(expected[i]));
    for (std::size_t k = 0; k < after.size(); ++k)
      ASSERT_NEAR(after[k], before[k] - gradient[k], tolerance) << "input " << i << ", element " << k;
  }
}

class OpGradients : public ::testing::TestWithParam<Case> {};

TEST_P(OpGradients, AreReducedWhereTheyAreMade) {
  if (!GetParam().has_gradient) GTEST_SKIP() << "has none";
  if (GetParam().judge == Judge::drawn) GTEST_SKIP() << "ranks draw other numbers";
  for (const bool sharded : {false, true}) {
    SCOPED_TRACE(sharded ? "sharded" : "whole");
    expect_mean_steps(GetParam(), sharded);
  }
}
INSTANTIATE_TEST_SUITE_P(All, OpGradients, ::testing::ValuesIn(all_cases(/*large=*/false)),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace kolo::op_cases
