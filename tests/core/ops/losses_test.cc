#include <kolo/core/ops/losses.h>

#include <gmock/gmock.h>

#include <cmath>

#include <kolo/core/base/error.h>

#include "tests/core/ops/compare_tensors.h"

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor scalar(double x) { return Tensor::scalar(x); }

TEST(L2Loss, IsHalfTheSumOfSquares) {
  const auto build = [](Scope& s, const Outputs& in) { return l2_loss(s, in[0]); };
  const Tensor x = Tensor::of<double>({2, 2}, {1, -2, 3, 4});
  expect_both_types({x}, scalar(15), 1e-7, build);
  expect_both_types({Tensor::zeros(DType::f64, {0, 3})}, scalar(0), 0, build);
  expect_gradients({x}, build);
}

const Tensor kLogits = Tensor::of<double>({2, 3}, {-2, -0.5, 0.25, 1, 3, -4});
const Tensor kLabels = Tensor::of<double>({2, 3}, {0, 1, 0.5, 1, 0.25, 1});

TEST(SigmoidCrossEntropy, IsTheCrossEntropyOfEachElement) {
  const auto build = [](Scope& s, const Outputs& in) {
    return sigmoid_cross_entropy_with_logits(s, in[0], in[1]);
  };
  Tensor expected(DType::f64, {2, 3});
  for (int i = 0; i < 6; ++i) {
    const double p = 1 / (1 + std::exp(-kLogits.data<double>()[i])), z = kLabels.data<double>()[i];
    expected.data<double>()[i] = -z * std::log(p) - (1 - z) * std::log(1 - p);
  }
  expect_both_types({kLogits, kLabels}, expected, 1e-6, build);
  expect_gradients({kLogits, kLabels}, build);
}

TEST(SigmoidCrossEntropy, DoesNotOverflow) {
  const Tensor x = Tensor::of<double>({4}, {1000, -1000, 1000, -1000}),
               z = Tensor::of<double>({4}, {1, 0, 0, 1});
  expect_both_types(
      {x, z}, Tensor::of<double>({4}, {0, 0, 1000, 1000}), 1e-7,
      [](Scope& s, const Outputs& in) { return sigmoid_cross_entropy_with_logits(s, in[0], in[1]); });
}

TEST(SoftmaxCrossEntropyWithLogits, WeighsTheLogarithmsWithTheLabels) {
  const auto build = [](Scope& s, const Outputs& in) {
    return softmax_cross_entropy_with_logits(s, in[0], in[1]);
  };
  Tensor expected = Tensor::zeros(DType::f64, {2});
  for (int row = 0; row < 2; ++row) {
    double sum = 0;
    for (int i = 0; i < 3; ++i) sum += std::exp(kLogits.data<double>()[3 * row + i]);
    for (int i = 0; i < 3; ++i)
      expected.data<double>()[row] -=
          kLabels.data<double>()[3 * row + i] * std::log(std::exp(kLogits.data<double>()[3 * row + i]) / sum);
  }
  expect_both_types({kLogits, kLabels}, expected, 2e-6, build);
  expect_gradients({kLogits, kLabels}, build);
}

TEST(MeanSquaredError, IsTheMeanOfSquaredDifferences) {
  const auto build = [](Scope& s, const Outputs& in) { return mean_squared_error(s, in[0], in[1]); };
  const Tensor a = Tensor::of<double>({3}, {1, 2, 3}), b = Tensor::of<double>({3}, {1, 0, 6});
  expect_both_types({a, b}, scalar(13.0 / 3), 1e-6, build);
  expect_gradients({a, b}, build);
}

TEST(HuberLoss, IsSquareNearZeroAndLinearBeyondDelta) {
  const auto build = [](Scope& s, const Outputs& in) { return huber_loss(s, in[0], in[1], 2); };
  const Tensor a = Tensor::of<double>({4}, {1, 5, -3, 0.5}), b = Tensor::of<double>({4}, {0, 2, 2, 1});
  // errors 1, 3, 5, 0.5: 1/2, 2·(3−1), 2·(5−1), 1/8
  expect_both_types({a, b}, scalar((0.5 + 4 + 8 + 0.125) / 4), 1e-6, build);
  expect_gradients({a, b}, build);
}

TEST(LossErrors, NameBothShapes) {
  Graph graph;
  Scope s(graph);
  const Output a = zeros(s, DType::f32, {2, 3}), b = zeros(s, DType::f32, {3});
  EXPECT_THAT([&] { sigmoid_cross_entropy_with_logits(s, a, b); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("logits and labels must have the same shape ([2,3] vs [3])")));
  EXPECT_THAT([&] { mean_squared_error(s, a, b); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("[2,3] vs [3]")));
  EXPECT_THAT([&] { huber_loss(s, a, a, 0); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("delta is 0")));
}

}  // namespace
}  // namespace kolo
