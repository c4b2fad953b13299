// Graphs around dense layers whose gradients' factors are shared: what could be overwritten, be read too
// early or wait for itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/registry.h>
#include <tests/core/test_ops.h>
#include <tests/mpi/dense_layer.h>

namespace kolo {
namespace {

const Layer kLayer{512, 1024, {40}};

// Made in the step, by no constant folding.
Output computed(const Scope& s, const Tensor& value) {
  return mul(s, constant(s, value), testing::call(s, 1));
}

Output own_inputs(const Scope& s) { return computed(s, matrix(kLayer.own_rows(), kLayer.inputs, rank())); }
Output own_weights_of_loss(const Scope& s) {
  return computed(s, matrix(kLayer.own_rows(), kLayer.outputs, rank() + 1));
}

void expect_sgd(const Tensor& w, int steps) {
  double worst = 0;
  kLayer.for_some([&](std::int64_t e, double gradient) {
    worst = std::max(worst, std::abs(w.data<float>()[e] + steps * kRate * gradient));
  });
  EXPECT_LT(worst, 2e-6 * steps);
}

int count_of(const std::string& op, Session& session, const Operation& step, const Feeds& feeds = {}) {
  RunMetadata metadata;
  session.run(std::vector<Fetch>{step}, feeds, {}, &metadata);
  return static_cast<int>(std::count_if(metadata.kernels.begin(), metadata.kernels.end(),
                                        [&](const KernelChoice& kernel) { return kernel.op == op; }));
}

TEST(SharedFactorsInAGraph, MayBeInputsInAVariableThatTheStepAssignsBefore) {
  Graph graph;
  Scope s(graph);
  const Variable v(s.named("v"), zeros(s, DType::f32, {kLayer.own_rows(), kLayer.inputs}),
                   {.trainable = false});
  const Variable w(s.named("w"), zeros(s, DType::f32, {kLayer.inputs, kLayer.outputs}));
  const Output assigned = assign(s, v, own_inputs(s));
  const Output loss = reduce_sum(s, mul(s, matmul(s, v, w), own_weights_of_loss(s)));
  DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = kRate}));
  const Operation step = optimizer.minimize(s, loss);
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(std::vector<Fetch>{assigned, step});
  expect_sgd(session.run(w.read()), 1);
}

// How the inputs x come about, and what else is fetched.
struct Source {
  const char* name;
  Output (*x)(const Scope& s, const Output& base, const Output& yes);
  Output (*fetched)(const Scope& s, const Output& x);
  float factor;
};

class SharedFactorsOf : public ::testing::TestWithParam<Source> {};

TEST_P(SharedFactorsOf, GiveTheAverageAndLeaveWhatIsFetchedAlone) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), zeros(s, DType::f32, {kLayer.inputs, kLayer.outputs}));
  const Output yes = placeholder(s, DType::boolean, {});
  const Output x = GetParam().x(s, own_inputs(s), yes);
  const Output loss = reduce_sum(s, mul(s, matmul(s, x, w), own_weights_of_loss(s)));
  DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = kRate}));
  const Operation step = optimizer.minimize(s, loss);
  const Output fetched = GetParam().fetched(s, x);
  Session session(graph);
  session.run(global_variables_initializer(s));
  for (int i = 0; i < 4; ++i) {
    const Tensor found = session.run({step, fetched}, {{yes, Tensor::scalar(i % 2 == 0)}})[1];
    for (std::int64_t e = 0; e < found.elements(); e += 37)
      ASSERT_FLOAT_EQ(found.data<float>()[e], GetParam().factor * number(e, rank())) << e;
  }
  expect_sgd(session.run(w.read()), 4);
}

INSTANTIATE_TEST_SUITE_P(
    Sources, SharedFactorsOf,
    ::testing::Values(Source{"AnOp", [](const Scope&, const Output& base, const Output&) { return base; },
                             [](const Scope&, const Output& x) { return x; }, 1},
                      Source{"AnOpThatSomethingElseReads",
                             [](const Scope&, const Output& base, const Output&) { return base; },
                             [](const Scope& s, const Output& x) { return mul(s, x, constant(s, 3.0f)); }, 3},
                      Source{"ABranch",
                             [](const Scope& s, const Output& base, const Output& yes) {
                               return cond(
                                   s, yes, [&](const Scope& t) { return Outputs{identity(t, base)}; },
                                   [&](const Scope& t) {
                                     return Outputs{mul(t, base, constant(t, 1.0f))};
                                   })[0];
                             },
                             [](const Scope&, const Output& x) { return x; }, 1},
                      Source{"Views",
                             [](const Scope& s, const Output& base, const Output&) {
                               return reshape(s, reshape(s, base, {kLayer.inputs, kLayer.own_rows()}),
                                              {kLayer.own_rows(), kLayer.inputs});
                             },
                             [](const Scope&, const Output& x) { return x; }, 1}),
    [](const ::testing::TestParamInfo<Source>& info) { return std::string(info.param.name); });

// Six layers of 64 rows, one behind the other.
struct DeepNetwork {
  explicit DeepNetwork(const Scope& s) {
    Output h = computed(s, matrix(64, 1024, rank()));
    for (int i = 0; i < 6; ++i) {
      weights.emplace_back(s.named("w"), constant(s, matrix(1024, 1024, i)));
      h = relu(s, matmul(s, h, weights.back()));
    }
    loss = reduce_sum(s, h);
  }
  std::vector<Variable> weights;
  Output loss;
};

void run_steps(Graph& graph, const Scope& s, const std::vector<Fetch>& fetches) {
  Session session(graph, {.intra_op_parallelism_threads = 1, .inter_op_parallelism_threads = -1});
  session.run(global_variables_initializer(s));
  for (int i = 0; i < 3; ++i) session.run(fetches);
}

// The first gradient that is made is reduced with the last: its scratch memory is needed before.
TEST(SharedFactorsInAGraph, EndWhereAGroupOfGradientsWaitsForTheLastLayer) {
  Graph graph;
  Scope s(graph);
  const DeepNetwork network(s);
  DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = 0}),
                                 {.groups = {{network.weights.front(), network.weights.back()}}});
  run_steps(graph, s, {optimizer.minimize(s, network.loss)});
}

// What reads an early gradient holds an activation until that has been reduced.
TEST(SharedFactorsInAGraph, EndWhereAnotherGradientIsLookedAtInTheMiddleOfTheBackwardPass) {
  Graph graph;
  Scope s(graph);
  const DeepNetwork network(s);
  const std::int64_t n = 64 * 1024;
  const Variable b(s.named("b"), zeros(s, DType::f32, {1, n}));
  const Output loss = add(s, network.loss, reduce_sum(s, mul(s, b, constant(s, matrix(1, n, rank())))));
  const Output activation = computed(s, matrix(n, 1, 0));
  DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = 0}), {.groups = {{b}}});
  const auto pairs = optimizer.compute_gradients(s, loss);
  const Operation step = optimizer.apply_gradients(s, pairs);
  run_steps(graph, s, {step, matmul(s, pairs.back().gradient, activation)});
}

// Rows of a table have a slot behind all buckets.
TEST(SharedFactorsInAGraph, AreSharedBesideGradientsThatAreRows) {
  Graph graph;
  Scope s(graph);
  const Variable table(s.named("table"), zeros(s, DType::f32, {8, 4}));
  const Variable w(s.named("w"), zeros(s, DType::f32, {kLayer.inputs, kLayer.outputs}));
  const Output rows = gather(s, table, constant(s, Tensor::of<std::int32_t>({2}, {rank(), 7})));
  const Output loss =
      add(s, reduce_sum(s, mul(s, matmul(s, own_inputs(s), w), own_weights_of_loss(s))), reduce_sum(s, rows));
  DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = kRate}));
  const Operation step = optimizer.minimize(s, loss);
  Session session(graph);
  session.run(global_variables_initializer(s));
  for (int i = 0; i < 3; ++i) session.run(step);
  expect_sgd(session.run(w.read()), 3);
  const Tensor found = session.run(table.read());
  for (int row = 0; row < 8; ++row) {
    const double share = row == 7 ? 1.0 : row < size() ? 1.0 / size() : 0.0;
    EXPECT_NEAR(found.data<float>()[row * 4], -3 * kRate * share, 1e-6) << row;
  }
}

// Ten layers of 16 by 16 and a batch of unknown size: nothing is to be gained, nobody meets.
TEST(SharedFactorsInAGraph, AreNoMatterForSmallLayers) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1, 16});
  Output h = x;
  for (int i = 0; i < 10; ++i) h = matmul(s, h, Variable(s.named("w"), constant(s, matrix(16, 16, 0))));
  DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = 0}));
  const Operation step = optimizer.minimize(s, reduce_sum(s, h));
  Session session(graph);
  session.run(global_variables_initializer(s));
  EXPECT_EQ(count_of("ShareFactors", session, step, {{x, matrix(8, 16, rank())}}), 0);
}

// Batches that are as large on all ranks, or not, in any order; any rank looks at a gradient or an
// activation.
TEST(SharedFactorsInAGraph, AreSharedInSomeStepsAndNotInOthers) {
  Graph graph;
  Scope s(graph);
  const std::int64_t inputs = 544, outputs = 1024;
  const Output x = placeholder(s, DType::f32, {-1, inputs}), c = placeholder(s, DType::f32, {-1, outputs});
  const Variable w(s.named("w"), zeros(s, DType::f32, {inputs, outputs}));
  const Output twice = mul(s, x, constant(s, 2.0f));
  DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = 1}));
  const auto pairs = optimizer.compute_gradients(s, reduce_sum(s, mul(s, matmul(s, twice, w), c)));
  const Operation step = optimizer.apply_gradients(s, pairs);
  Session session(graph);
  session.run(global_variables_initializer(s));
  const auto seen = [](std::int64_t i, std::int64_t j) { return (i + j) % 97 == 0; };
  std::vector<double> sum(static_cast<std::size_t>(inputs * outputs));
  std::mt19937 random(7);  // the same on all ranks
  const std::vector<std::int64_t> sizes = {4, 20, 50, 130};
  for (int n = 0; n < 40; ++n) {
    const bool alike = random() % 3 != 0;
    std::vector<std::int64_t> rows;
    for (int r = 0; r < size(); ++r)
      rows.push_back(alike && r > 0 ? rows[0] : sizes[random() % sizes.size()]);
    for (int r = 0; r < size(); ++r)
      for (std::int64_t i = 0; i < inputs; ++i)
        for (std::int64_t j = 0; j < outputs; ++j)
          for (std::int64_t k = 0; seen(i, j) && k < rows[static_cast<std::size_t>(r)]; ++k)
            sum[static_cast<std::size_t>(i * outputs + j)] +=
                2.0 * number(k * inputs + i, r + n) * number(k * outputs + j, r + n + 1) / size();
    const std::int64_t own = rows[static_cast<std::size_t>(rank())];
    const Feeds feeds{{x, matrix(own, inputs, rank() + n)}, {c, matrix(own, outputs, rank() + n + 1)}};
    const auto looks = static_cast<int>(random() % 6);
    std::vector<Fetch> fetches = {step};
    if (looks == rank()) fetches.push_back(pairs[0].gradient);
    if (looks == 4) fetches.push_back(twice);
    session.run(fetches, feeds);
  }
  const Tensor found = session.run(w.read());
  double worst = 0;
  for (std::int64_t e = 0; e < found.elements(); ++e)
    if (seen(e / outputs, e % outputs))
      worst = std::max(worst, std::abs(found.data<float>()[e] + sum[static_cast<std::size_t>(e)]));
  EXPECT_LT(worst, 1e-4);
  const std::string own = bytes_of(found);
  EXPECT_TRUE(world_group().broadcast(own, 0) == own);
}

}  // namespace
}  // namespace kolo
