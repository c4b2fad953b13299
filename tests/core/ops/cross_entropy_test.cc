#include <gmock/gmock.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/cross_entropy.h>

#include "tests/core/ops/compare_tensors.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

const std::vector<std::int64_t> kLabels{2, 0, 6, 3, 3};

Tensor labels_of(DType dtype) {
  if (dtype == DType::i64) return Tensor::of<std::int64_t>({5}, std::span(kLabels));
  const std::vector<std::int32_t> narrow(kLabels.begin(), kLabels.end());
  return Tensor::of<std::int32_t>({5}, std::span(narrow));
}

TEST(CrossEntropy, IsTheNegativeLogarithmOfTheLabelsShare) {
  const Tensor logits = test_numbers({5, 7});
  Tensor expected(DType::f64, {5});
  for (std::int64_t row = 0; row < 5; ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < 7; ++i) sum += std::exp(logits.data<double>()[row * 7 + i]);
    expected.data<double>()[row] = -std::log(std::exp(logits.data<double>()[row * 7 + kLabels[row]]) / sum);
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
