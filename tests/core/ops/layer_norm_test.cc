#include <kolo/core/ops/layer_norm.h>

#include <gmock/gmock.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>

#include "tests/core/ops/compare_tensors.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double kEpsilon = 0.01;
Output build(Scope& s, const Outputs& in) { return layer_norm(s, in[0], in[1], in[2], kEpsilon); }

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
      y.data<double>()[row + i] = (x[i] - mean) / std::sqrt(variance + kEpsilon) * in_[1].data<double>()[i] +
                                  in_[2].data<double>()[i];
  }
  expect_both_types(in_, y, 5e-6, build);
}

TEST_P(LayerNorm, HasTheGradientOfItsValues) {
  if (in_[0].elements() > 300) GTEST_SKIP() << "central differences of small tensors are enough";
  expect_gradients(in_, build);
  expect_gradients(in_, build, {.known_shapes = false});
}

TEST_P(LayerNorm, HasTheSameGradientInBothTypes) { expect_same_gradients(in_, 2e-5, build); }

INSTANTIATE_TEST_SUITE_P(Shapes, LayerNorm,
                         testing::Values(Shape{7}, Shape{3, 10}, Shape{2, 3, 5}, Shape{2, 1}, Shape{0, 3},
                                         Shape{4, 1100}));

TEST(LayerNormShape, KeepsXAndKnowsItsRows) {
  expect_shape({{-1, -1, 4}, {4}, {-1}}, build, {-1, -1, 4});
  expect_shape({Shape::unknown_rank(), {4}, {4}}, build, Shape::unknown_rank());
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
