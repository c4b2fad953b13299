#include <kolo/core/ops/normalization.h>

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>

#include "tests/core/ops/compare_tensors.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double kEpsilon = 0.01;
constexpr double kMomentum = 0.75;

// Of each channel: mean and population variance, by two plain loops.
struct Statistics {
  std::vector<double> mean, variance;
  std::int64_t per_channel = 0;
};

std::int64_t inner_of(const Shape& shape) {
  std::int64_t inner = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) inner *= shape.dim(axis);
  return inner;
}

Statistics statistics_of(const Tensor& x) {
  const std::int64_t channels = x.shape().dim(1), inner = inner_of(x.shape());
  Statistics s{std::vector<double>(channels), std::vector<double>(channels), x.shape().dim(0) * inner};
  const auto count = static_cast<double>(s.per_channel);
  const auto channel = [&](std::int64_t i) { return i / inner % channels; };
  for (std::int64_t i = 0; i < x.elements(); ++i) s.mean[channel(i)] += x.data<double>()[i] / count;
  for (std::int64_t i = 0; i < x.elements(); ++i)
    s.variance[channel(i)] += std::pow(x.data<double>()[i] - s.mean[channel(i)], 2) / count;
  return s;
}

Tensor normalized(const std::vector<Tensor>& in, const Statistics& s) {
  Tensor y(DType::f64, in[0].shape());
  const std::int64_t channels = in[0].shape().dim(1), inner = inner_of(in[0].shape());
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t c = i / inner % channels;
    y.data<double>()[i] = (in[0].data<double>()[i] - s.mean[c]) / std::sqrt(s.variance[c] + kEpsilon) *
                              in[1].data<double>()[c] +
                          in[2].data<double>()[c];
  }
  return y;
}

BatchNormResult build(Scope& s, const Outputs& in) {
  return batch_norm(s, in[0], in[1], in[2], in[3], in[4], {.epsilon = kEpsilon, .momentum = kMomentum});
}

// x, scale, offset, moving mean, moving variance. The mean is far from 0 compared with the deviations.
std::vector<Tensor> inputs_of(const Shape& shape) {
  std::vector<Tensor> in{test_numbers(shape)};
  for (double& x : in[0].span<double>()) x += 3;
  for (int i = 1; i < 5; ++i) in.push_back(test_numbers({shape.dim(1)}, i));
  for (double& variance : in[4].span<double>()) variance = variance * variance + 0.1;
  return in;
}

class BatchNorm : public testing::TestWithParam<Shape> {
 protected:
  const std::vector<Tensor> in_ = inputs_of(GetParam());
};

TEST_P(BatchNorm, NormalizesEachChannelWithTheStatisticsOfTheBatch) {
  expect_both_types(in_, normalized(in_, statistics_of(in_[0])), 5e-5,
                    [](Scope& s, const Outputs& in) { return build(s, in).y; });
}

TEST_P(BatchNorm, MovesItsAveragesTowardsMeanAndSampleVariance) {
  const Statistics of_batch = statistics_of(in_[0]);
  Tensor mean = in_[3].clone(), variance = in_[4].clone();
  const double n = static_cast<double>(of_batch.per_channel);
  for (std::int64_t c = 0; c < mean.elements(); ++c) {
    mean.data<double>()[c] = kMomentum * mean.data<double>()[c] + (1 - kMomentum) * of_batch.mean[c];
    variance.data<double>()[c] =
        kMomentum * variance.data<double>()[c] + (1 - kMomentum) * of_batch.variance[c] * n / (n - 1);
  }
  expect_both_types(in_, mean, 2e-6, [](Scope& s, const Outputs& in) { return build(s, in).moving_mean; });
  expect_both_types(in_, variance, 2e-6,
                    [](Scope& s, const Outputs& in) { return build(s, in).moving_variance; });
}

TEST_P(BatchNorm, HasTheGradientOfItsValues) {
  if (in_[0].elements() > 300) GTEST_SKIP() << "central differences of small images are enough";
  GradientCheck check{.constant = {3, 4}};
  expect_gradients(
      in_, [](Scope& s, const Outputs& in) { return build(s, in).y; }, check);
  check.known_shapes = false;
  expect_gradients(
      in_, [](Scope& s, const Outputs& in) { return build(s, in).y; }, check);
}

TEST_P(BatchNorm, HasTheSameGradientInBothTypes) {
  const std::vector<Tensor> parameters(in_.begin(), in_.begin() + 3);
  expect_same_gradients(parameters, 2e-4, [](Scope& s, const Outputs& in) {
    const Output other = zeros_like(s, in[1]);
    return build(s, {in[0], in[1], in[2], other, other}).y;
  });
}

TEST_P(BatchNorm, UsesGivenStatisticsInInference) {
  Statistics given{{in_[3].span<double>().begin(), in_[3].span<double>().end()},
                   {in_[4].span<double>().begin(), in_[4].span<double>().end()}};
  const auto build_inference = [](Scope& s, const Outputs& in) {
    return batch_norm_inference(s, in[0], in[1], in[2], in[3], in[4], kEpsilon);
  };
  expect_both_types(in_, normalized(in_, given), 1e-5, build_inference);
  if (in_[0].elements() > 300) return;
  Graph graph;
  expect_gradients({in_[0], in_[1], in_[2]}, [&](Scope& s, const Outputs& in) {
    return batch_norm_inference(s, in[0], in[1], in[2], constant(s, in_[3]), constant(s, in_[4]), kEpsilon);
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchNorm,
                         testing::Values(Shape{4, 3}, Shape{5, 17}, Shape{2, 3, 4, 5}, Shape{3, 1, 2, 2},
                                         Shape{2, 3, 7}, Shape{8, 16, 9, 9}));

TEST(BatchNormOfAnEmptyBatch, KeepsItsAverages) {
  const std::vector<Tensor> in = inputs_of({0, 3, 4, 4});
  for (const bool variance : {false, true})
    expect_both_types(in, in[variance ? 4 : 3], 1e-6, [&](Scope& s, const Outputs& xs) {
      return variance ? build(s, xs).moving_variance : build(s, xs).moving_mean;
    });
}

TEST(BatchNormOfOneElement, GivesTheOffset) {
  const std::vector<Tensor> in = inputs_of({1, 3});
  expect_both_types(in, in[2].reshaped({1, 3}), 1e-6,
                    [](Scope& s, const Outputs& xs) { return build(s, xs).y; });
}

TEST(BatchNormShape, KeepsXAndHasOneStatisticForEachChannel) {
  const Shape unknown = Shape::unknown_rank();
  const auto y = [](Scope& s, const Outputs& in) { return build(s, in).y; };
  const auto mean = [](Scope& s, const Outputs& in) { return build(s, in).mean; };
  const auto inference = [](Scope& s, const Outputs& in) {
    return batch_norm_inference(s, in[0], in[1], in[2], in[3], in[4]);
  };
  expect_shape({{-1, 3, -1}, {3}, {-1}, {-1}, {-1}}, y, {-1, 3, -1});
  expect_shape({{-1, -1, 5}, {-1}, {-1}, {-1}, {3}}, mean, {3});
  expect_shape({unknown, {3}, {3}, unknown, {3}}, mean, {3});
  expect_shape({{-1, 3, -1}, {3}, {-1}, {-1}, {-1}}, inference, {-1, 3, -1});
}

TEST(BatchNormErrors, NamesShapesThatDoNotFit) {
  Graph graph;
  Scope s(graph);
  const Output c = zeros(s, DType::f32, {3}), d = zeros(s, DType::f32, {4});
  const Output x = zeros(s, DType::f32, {2, 3, 5, 5});
  EXPECT_THAT([&] { batch_norm(s, x, c, d, c, c); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2,3,5,5]"), HasSubstr("offset is [4]"))));
  EXPECT_THAT([&] { batch_norm(s, c, c, c, c, c); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("[3]")));
  EXPECT_THAT([&] { batch_norm(s, x, c, c, c, c, {.epsilon = -1}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("epsilon is -1")));
  EXPECT_THAT([&] { batch_norm(s, x, c, c, c, c, {.momentum = 2}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("momentum is 2")));
}

constexpr double kLayerEpsilon = 0.01;
Output build_layer_norm(Scope& s, const Outputs& in) {
  return layer_norm(s, in[0], in[1], in[2], kLayerEpsilon);
}

class LayerNorm : public testing::TestWithParam<Shape> {
 protected:
  // The mean is far from 0 compared with the deviations.
  static std::vector<Tensor> inputs(const Shape& shape) {
    std::vector<Tensor> in{test_numbers(shape), test_numbers({shape.dim(-1)}, 1),
                           test_numbers({shape.dim(-1)}, 2)};
    for (double& x : in[0].span<double>()) x += 3;
    return in;
  }
  const std::vector<Tensor> in_ = inputs(GetParam());
};

TEST_P(LayerNorm, NormalizesAlongTheLastDimension) {
  Tensor y(DType::f64, GetParam());
  const std::int64_t width = GetParam().dim(-1);
  for (std::int64_t row = 0; row < y.elements(); row += width) {
    const double* x = in_[0].data<double>() + row;
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < width; ++i) mean += x[i] / static_cast<double>(width);
    for (std::int64_t i = 0; i < width; ++i)
      variance += std::pow(x[i] - mean, 2) / static_cast<double>(width);
    for (std::int64_t i = 0; i < width; ++i)
      y.data<double>()[row + i] =
          (x[i] - mean) / std::sqrt(variance + kLayerEpsilon) * in_[1].data<double>()[i] +
          in_[2].data<double>()[i];
  }
  expect_both_types(in_, y, 5e-6, build_layer_norm);
}

TEST_P(LayerNorm, HasTheGradientOfItsValues) {
  if (in_[0].elements() > 300) GTEST_SKIP() << "central differences of small tensors are enough";
  expect_gradients(in_, build_layer_norm);
  expect_gradients(in_, build_layer_norm, {.known_shapes = false});
}

TEST_P(LayerNorm, HasTheSameGradientInBothTypes) { expect_same_gradients(in_, 2e-5, build_layer_norm); }

INSTANTIATE_TEST_SUITE_P(Shapes, LayerNorm,
                         testing::Values(Shape{7}, Shape{3, 10}, Shape{2, 3, 5}, Shape{2, 1}, Shape{0, 3},
                                         Shape{4, 1100}));

TEST(LayerNormShape, KeepsXAndKnowsItsRows) {
  expect_shape({{-1, -1, 4}, {4}, {-1}}, build_layer_norm, {-1, -1, 4});
  expect_shape({Shape::unknown_rank(), {4}, {4}}, build_layer_norm, Shape::unknown_rank());
}

TEST(LayerNormGradient, KnowsScaleAndOffsetWhereXDoesNotTell) {
  for (const Shape& unknown : {Shape{-1, -1}, Shape::unknown_rank()}) {
    Graph graph;
    Scope s(graph);
    const Output x = placeholder(s, DType::f32, unknown);
    const Output scale = zeros(s, DType::f32, {3}), offset = zeros(s, DType::f32, {3});
    for (const Output& gradient : gradients(s, {layer_norm(s, x, scale, offset)}, {scale, offset}))
      EXPECT_EQ(gradient.shape(), Shape{3});
  }
}

TEST(LayerNormErrors, NamesShapesThatDoNotFit) {
  Graph graph;
  Scope s(graph);
  const Output x = zeros(s, DType::f32, {2, 3}), c = zeros(s, DType::f32, {3}), d = zeros(s, DType::f32, {2});
  EXPECT_THAT([&] { layer_norm(s, x, c, d); }, ThrowsMessage<InvalidArgumentError>(AllOf(
                                                   HasSubstr("x is [2,3]"), HasSubstr("offset is [2]"))));
  EXPECT_THAT([&] { layer_norm(s, x, c, c, -1); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("epsilon is -1")));
}

}  // namespace
}  // namespace kolo
