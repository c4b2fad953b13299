#include <kolo/core/kernels/cpu/conv/blocked_pointwise.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <kolo/core/tensor/tensor.h>

#include "tests/core/kernels/cpu/conv/block_planes.h"

namespace kolo::detail {
namespace {

using Axis = BlockedPointwise::Axis;

struct Operands {
  explicit Operands(const BlockedPointwise& c)
      : shape(c),
        x(c.block(), c.images, c.channels, c.rows.size, c.cols.size, 1),
        dy(c.block(), c.images, c.outs, c.rows.outputs, c.cols.outputs, 2),
        weights(random_numbers({c.outs, c.channels}, 3)) {}

  double weight(std::int64_t o, std::int64_t c) const {
    return weights.data<float>()[o * shape.channels + c];
  }
  double image(std::int64_t n, std::int64_t c, std::int64_t row, std::int64_t col) const {
    return x.at(n, c, row * shape.rows.stride, col * shape.cols.stride);
  }
  double result(std::int64_t n, std::int64_t o, std::int64_t row, std::int64_t col) const {
    double sum = 0;
    for (std::int64_t c = 0; c < shape.channels; ++c) sum += weight(o, c) * image(n, c, row, col);
    return sum;
  }
  double image_gradient(std::int64_t n, std::int64_t c, std::int64_t row, std::int64_t col) const {
    if (row % shape.rows.stride != 0 || col % shape.cols.stride != 0) return 0;
    double sum = 0;
    for (std::int64_t o = 0; o < shape.outs; ++o)
      sum += weight(o, c) * dy.at(n, o, row / shape.rows.stride, col / shape.cols.stride);
    return sum;
  }
  double weight_gradient(std::int64_t o, std::int64_t c) const {
    double sum = 0;
    for (std::int64_t n = 0; n < shape.images; ++n)
      for (std::int64_t row = 0; row < shape.rows.outputs; ++row)
        for (std::int64_t col = 0; col < shape.cols.outputs; ++col)
          sum += image(n, c, row, col) * dy.at(n, o, row, col);
    return sum;
  }

  BlockedPointwise shape;
  Planes x, dy;
  Tensor weights;
};

constexpr double kBound = 2e-6;

class BlockPoints : public testing::TestWithParam<BlockedPointwise> {};

TEST_P(BlockPoints, MakeTheResultsOfTheConvolution) {
  ASSERT_TRUE(GetParam().fits());
  expect_results(Operands(GetParam()), kBound);
}

TEST_P(BlockPoints, MakeTheGradientOfTheImages) { expect_image_gradient(Operands(GetParam()), kBound); }

TEST_P(BlockPoints, AddToTheGradientOfTheImagesWhereItLies) {
  const BlockedPointwise c = GetParam();
  if (!c.takes_all_pixels()) GTEST_SKIP() << "a gradient of all pixels alone has a tail";
  const Operands in(c);
  const Planes added(c.block(), c.images, c.channels, c.rows.size, c.cols.size, 4),
      y(c.block(), c.images, c.channels, c.rows.size, c.cols.size, 5);
  Planes sums(c.block(), c.images, c.channels, c.rows.size, c.cols.size, 4),
      masked(c.block(), c.images, c.channels, c.rows.size, c.cols.size);
  const Tensor memory = scratch(c.image_gradient_scratch_bytes());
  c.image_gradient(in.weights.data<float>(), in.dy.data(), {.added = sums.data()}, sums.data(),
                   memory.data<float>());
  c.image_gradient(in.weights.data<float>(), in.dy.data(), {.added = added.data(), .y = y.data()},
                   masked.data(), memory.data<float>());
  Comparison with_f64(sums.elements());
  for (std::int64_t n = 0; n < c.images; ++n)
    for (std::int64_t i = 0; i < c.channels; ++i)
      for (std::int64_t row = 0; row < c.rows.size; ++row)
        for (std::int64_t col = 0; col < c.cols.size; ++col) {
          with_f64.add(sums(n, i, row, col),
                       [&] { return in.image_gradient(n, i, row, col) + added.at(n, i, row, col); });
          ASSERT_EQ(masked(n, i, row, col), y.at(n, i, row, col) > 0 ? sums(n, i, row, col) : 0);
        }
  EXPECT_LT(with_f64.error(), kBound);
}

TEST_P(BlockPoints, MakeTheGradientOfTheWeights) {
  const BlockedPointwise c = GetParam();
  const Operands in(c);
  Tensor dweights(DType::f32, in.weights.shape());
  c.weight_gradient(in.x.data(), in.dy.data(), dweights.data<float>(),
                    scratch(c.weight_gradient_scratch_bytes() + 64).data<float>());
  Comparison with_f64(dweights.elements());
  const float* got = dweights.data<float>();
  for (std::int64_t o = 0; o < c.outs; ++o)
    for (std::int64_t i = 0; i < c.channels; ++i)
      with_f64.add(*got++, [&] { return in.weight_gradient(o, i); });
  EXPECT_LT(with_f64.error(), kBound);
}

// A single pixel, several images and several pieces of one at a time, inputs in several parts, an odd number
// of blocks, weights that do not stay in a cache, and strides that leave pixels behind the last window.
INSTANTIATE_TEST_SUITE_P(Shapes, BlockPoints,
                         testing::Values(BlockedPointwise{2, 16, 16, {1, 1, 1}, {1, 1, 1}},
                                         BlockedPointwise{9, 48, 32, {7, 7, 1}, {9, 9, 1}},
                                         BlockedPointwise{2, 32, 48, {31, 31, 1}, {29, 29, 1}},
                                         BlockedPointwise{3, 528, 32, {5, 5, 1}, {5, 5, 1}},
                                         BlockedPointwise{2, 1024, 512, {4, 4, 1}, {4, 4, 1}},
                                         BlockedPointwise{3, 32, 80, {9, 5, 2}, {8, 3, 3}},
                                         BlockedPointwise{2, 16, 16, {7, 7, 1}, {9, 5, 2}}),
                         [](const auto& info) {
                           const BlockedPointwise& c = info.param;
                           return "n" + std::to_string(c.images) + "x" + std::to_string(c.channels) + "to" +
                                  std::to_string(c.outs) + "at" + std::to_string(c.rows.size) + "x" +
                                  std::to_string(c.cols.size);
                         });

TEST(BlockedPointwiseTest, MasksAsARectifiersGradientDoes) {
  const std::int64_t block = BlockedPointwise::block();
  const BlockedPointwise c{1, block, block, {1, 1, 1}, {3, 3, 1}};
  const Operands in(c);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Planes added(block, 1, block, 1, 3), y(block, 1, block, 1, 3);
  std::fill_n(added.data(), added.elements(), 2.0f);
  std::fill_n(y.data(), y.elements(), 1.0f);
  added(0, 0, 0, 0) = kNan, y(0, 0, 0, 1) = kNan, y(0, 0, 0, 2) = -0.0f;
  c.image_gradient(in.weights.data<float>(), in.dy.data(), {.added = added.data(), .y = y.data()},
                   added.data(), scratch(c.image_gradient_scratch_bytes()).data<float>());
  EXPECT_TRUE(std::isnan(added(0, 0, 0, 0)));
  EXPECT_EQ(added(0, 0, 0, 1), 0) << "a NaN is not > 0";
  EXPECT_EQ(added(0, 0, 0, 2), 0);
}

TEST(BlockedPointwiseTest, TakesWholeBlocksAndPixelsInsideAlone) {
  const std::int64_t block = BlockedPointwise::block();
  const Axis all{8, 8, 1}, halves{8, 4, 2};
  EXPECT_TRUE((BlockedPointwise{1, block, block, all, halves}).fits());
  EXPECT_FALSE((BlockedPointwise{0, block, block, all, all}).fits());
  EXPECT_FALSE((BlockedPointwise{1, block, block, {8, 5, 2}, all}).fits()) << "the last is pixel 8";
  EXPECT_FALSE((BlockedPointwise{1, block, block, {8, 7, 1}, all}).fits());
  if (block == 1) return;
  EXPECT_FALSE((BlockedPointwise{1, block + 1, block, all, all}).fits());
}

}  // namespace
}  // namespace kolo::detail
