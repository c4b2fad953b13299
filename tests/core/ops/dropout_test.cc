#include <kolo/core/ops/dropout.h>

#include <gmock/gmock.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/inference_form.h>

#include "tests/core/ops/compare_tensors.h"

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t kMany = 100'001;

// Dropout of ones, in a graph with a seed: its results in the first runs of a session.
std::vector<Tensor> draws(DType dtype, double rate, int runs = 1, int seed = 7, int threads = 1) {
  Graph graph;
  graph.set_seed(seed);
  Scope s(graph);
  const Output y = dropout(s, ones(s, dtype, {kMany}), rate);
  SessionConfig config;
  config.intra_op_parallelism_threads = threads;
  Session session(graph, config);
  std::vector<Tensor> results;
  for (int run = 0; run < runs; ++run) results.push_back(detail::as_double(session.run(y)));
  return results;
}

bool same(const Tensor& a, const Tensor& b) { return std::equal(a.raw(), a.raw() + a.bytes(), b.raw()); }

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const double rate : {0.1, 0.5, 0.9}) {
      const Tensor y = draws(dtype, rate)[0];
      std::int64_t dropped = 0;
      for (const double value : y.span<double>()) {
        if (value == 0) ++dropped;
        else ASSERT_NEAR(value, 1 / (1 - rate), 1e-6);
      }
      // Five standard errors; the seed is fixed.
      const auto count = static_cast<double>(kMany);
      EXPECT_NEAR(static_cast<double>(dropped) / count, rate, 5 * std::sqrt(rate * (1 - rate) / count));
    }
}

TEST(Dropout, DrawsAnewInEachRunAndAlikeInEachSession) {
  const auto first = draws(DType::f32, 0.5, 2), second = draws(DType::f32, 0.5, 2);
  EXPECT_FALSE(same(first[0], first[1]));
  EXPECT_TRUE(same(first[0], second[0]));
  EXPECT_TRUE(same(first[1], second[1]));
  EXPECT_FALSE(same(first[0], draws(DType::f32, 0.5, 1, 8)[0]));
}

TEST(Dropout, DoesNotDependOnTheNumberOfThreads) {
  EXPECT_TRUE(same(draws(DType::f32, 0.5)[0], draws(DType::f32, 0.5, 1, 7, 3)[0]));
}

TEST(Dropout, LetsGradientsPassWhereItLetXPass) {
  Graph graph;
  Scope s(graph);
  const Output x = ones(s, DType::f64, {1000}), y = dropout(s, x, 0.25);
  const Tensor dy = test_numbers({1000});
  const auto results = Session(graph).run({y, gradients(s, {y}, {x}, {constant(s, dy)})[0]});
  for (int i = 0; i < 1000; ++i)
    ASSERT_DOUBLE_EQ(results[1].data<double>()[i], results[0].data<double>()[i] * dy.data<double>()[i]) << i;
  record_op_check("Dropout", OpCheck::value);
  record_op_check("Dropout", OpCheck::gradient);
  record_op_check("DropoutGrad", OpCheck::value);
}

TEST(Dropout, KeepsTheShape) {
  const auto build = [](Scope& s, const Outputs& in) { return dropout(s, in[0], 0.5); };
  const auto build_gradient = [&](Scope& s, const Outputs& in) {
    return gradients(s, {build(s, in)}, in)[0];
  };
  expect_shape({{-1, 3}}, build, {-1, 3});
  expect_shape({{-1, 3}}, build_gradient, {-1, 3});
  EXPECT_EQ(run_op({Tensor::zeros(DType::f32, {0, 3})}, build).shape(), (Shape{0, 3}));
}

TEST(Dropout, IsNothingInInferenceOrAtRateZero) {
  Graph graph;
  Scope s(graph);
  const Output x = ones(s, DType::f32, {3});
  EXPECT_EQ(inference_form(s, dropout(s, x, 0.5)), x);
  EXPECT_EQ(dropout(s, x, 0), x);
}

TEST(DropoutErrors, RefusesRatesThatLeaveNothing) {
  Graph graph;
  Scope s(graph);
  const Output x = ones(s, DType::f32, {3});
  for (const double rate : {1.0, -0.5, std::nan("")})
    EXPECT_THAT([&] { dropout(s, x, rate); },
                ThrowsMessage<InvalidArgumentError>(
                    HasSubstr("rate must be a scalar tensor or a float in the range [0, 1), got")));
}

}  // namespace
}  // namespace kolo
