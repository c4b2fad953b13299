#include <kolo/core/ops/losses.h>

#include <gmock/gmock.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>

#include "tests/core/ops/compare_tensors.h"

namespace kolo {
namespace {

using testing::AllOf;
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

const std::vector<std::int64_t> kClasses{2, 0, 6, 3, 3};

Tensor labels_of(DType dtype) {
  if (dtype == DType::i64) return Tensor::of<std::int64_t>({5}, std::span(kClasses));
  const std::vector<std::int32_t> narrow(kClasses.begin(), kClasses.end());
  return Tensor::of<std::int32_t>({5}, std::span(narrow));
}

TEST(CrossEntropy, IsTheNegativeLogarithmOfTheLabelsShare) {
  const Tensor logits = test_numbers({5, 7});
  Tensor expected(DType::f64, {5});
  for (std::int64_t row = 0; row < 5; ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < 7; ++i) sum += std::exp(logits.data<double>()[row * 7 + i]);
    expected.data<double>()[row] = -std::log(std::exp(logits.data<double>()[row * 7 + kClasses[row]]) / sum);
  }
  for (const DType type : {DType::i32, DType::i64})
    expect_both_types({logits}, expected, 1e-6, [&](Scope& s, const Outputs& in) {
      return sparse_softmax_cross_entropy_with_logits(s, in[0], constant(s, labels_of(type)));
    });
}

TEST(CrossEntropy, HasTheGradientOfItsValues) {
  const auto each = [](Scope& s, const Outputs& in) {
    return sparse_softmax_cross_entropy_with_logits(s, in[0], constant(s, labels_of(DType::i64)));
  };
  const auto mean = [](Scope& s, const Outputs& in) {
    return softmax_cross_entropy(s, in[0], constant(s, labels_of(DType::i32)));
  };
  expect_gradients({test_numbers({5, 7})}, each);
  expect_gradients({test_numbers({5, 7})}, mean);
  expect_same_gradients({test_numbers({5, 7})}, 1e-6, each);
}

TEST(CrossEntropy, OfEqualLogitsIsTheLogarithmOfTheClasses) {
  const Tensor mean = run_op({Tensor::zeros(DType::f32, {5, 7})}, [](Scope& s, const Outputs& in) {
    return softmax_cross_entropy(s, in[0], constant(s, labels_of(DType::i32)));
  });
  EXPECT_EQ(mean.shape(), Shape());
  EXPECT_NEAR(mean.value<float>(), std::log(7.0), 1e-6);
}

TEST(CrossEntropy, OfLargeLogitsIsFinite) {
  const Tensor loss = run_op({Tensor::of<float>({1, 2}, {1000, -1000})}, [](Scope& s, const Outputs& in) {
    return sparse_softmax_cross_entropy_with_logits(s, in[0],
                                                    constant(s, Tensor::of<std::int32_t>({1}, {1})));
  });
  EXPECT_EQ(loss.value<float>(), 2000);
}

TEST(CrossEntropyErrors, NamesTheLabelThatIsOutOfRange) {
  for (const std::int32_t label : {10, -1}) {
    Graph graph;
    Scope s(graph);
    const auto labels = constant(s, Tensor::of<std::int32_t>({3}, {0, label, 9}));
    const auto loss = softmax_cross_entropy(s, zeros(s, DType::f32, {3, 10}), labels);
    Session session(graph);
    EXPECT_THAT([&] { session.run(loss); },
                ThrowsMessage<InvalidArgumentError>(AllOf(
                    HasSubstr(fmt::format(
                        "Received a label value of {} which is outside the valid range of [0, 10)", label)),
                    HasSubstr("label 1 of 3"))));
  }
}

TEST(CrossEntropyErrors, RefusesShapesThatDoNotFit) {
  Graph graph;
  Scope s(graph);
  const auto logits = zeros(s, DType::f32, {3, 10});
  const auto few = zeros(s, DType::i32, {2}), matrix = zeros(s, DType::i32, {3, 10}),
             real = zeros(s, DType::f32, {3});
  EXPECT_THAT([&] { softmax_cross_entropy(s, logits, few); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[3,10]"), HasSubstr("[2]"))));
  EXPECT_THAT([&] { softmax_cross_entropy(s, logits, matrix); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("[N]")));
  EXPECT_THAT([&] { softmax_cross_entropy(s, logits, real); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("i32, i64")));
}

}  // namespace
}  // namespace kolo
