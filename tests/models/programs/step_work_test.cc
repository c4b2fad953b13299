#include <kolo/models/programs/step_work.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/attention.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/linalg.h>

namespace kolo::models {
namespace {

double flops_of_all(const Graph& graph, const std::vector<Fetch>& fetches, const Feeds& feeds = {}) {
  double flops = 0;
  for (const auto& [name, work] : step_work(graph, fetches, feeds)) flops += work.flops;
  return flops;
}

TEST(StepWork, CountsAProductByTheShapesThatAreFed) {
  Graph graph;
  Scope s(graph);
  const Output a = placeholder(s, DType::f32, {-1, 3});
  const Output product = matmul(s.named("product"), a, zeros(s, DType::f32, {3, 5}));
  const auto work = step_work(graph, {product}, {{a, Tensor(DType::f32, {7, 3})}});
  EXPECT_DOUBLE_EQ(work.at("product").flops, 2 * 7 * 3 * 5);
  EXPECT_DOUBLE_EQ(work.at("product").bytes, 4 * (7 * 3 + 3 * 5 + 7 * 5));
}

TEST(StepWork, CountsAProductAndItsTwoGradients) {
  Graph graph;
  Scope s(graph);
  const Output a = zeros(s, DType::f32, {7, 3}), b = zeros(s, DType::f32, {3, 5});
  const Output product = matmul(s, a, b);
  const Outputs of_both = gradients(s, {product}, {a, b});
  EXPECT_DOUBLE_EQ(flops_of_all(graph, {product, of_both[0], of_both[1]}), 3 * 2 * 7 * 3 * 5);
}

TEST(StepWork, CountsThreePassesOfAConvolutionInGroups) {
  Graph graph;
  Scope s(graph);
  const Output images = zeros(s, DType::f32, {2, 4, 8, 8}), weights = zeros(s, DType::f32, {6, 2, 3, 3});
  const Output results = conv2d(s, images, weights, {.strides = {2, 2}, .groups = 2});
  const Outputs of_both = gradients(s, {results}, {images, weights});
  const double pass = 2.0 * (2 * 6 * 4 * 4) * (2 * 3 * 3);
  EXPECT_DOUBLE_EQ(flops_of_all(graph, {results}), pass);
  EXPECT_DOUBLE_EQ(flops_of_all(graph, {results, of_both[0], of_both[1]}), 3 * pass);
}

TEST(StepWork, CountsThePairsOfPlacesThatCausalAttentionLooksAt) {
  Graph graph;
  Scope s(graph);
  const Output qkv = zeros(s, DType::f32, {2, 5, 3 * 8});
  const auto flops = [&](bool causal) {
    return flops_of_all(graph, {self_attention(s, qkv, {.heads = 2, .causal = causal})});
  };
  EXPECT_DOUBLE_EQ(flops(false), 2 * (2 * 2.0 * 25 * 8));
  EXPECT_DOUBLE_EQ(flops(true), 2 * (2 * 2.0 * 15 * 8));
}

}  // namespace
}  // namespace kolo::models
