#include <kolo/core/kernels/cpu/conv/winograd.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <kolo/core/tensor/tensor.h>

#include "tests/core/kernels/cpu/conv/block_planes.h"

namespace kolo::detail {
namespace {

using Axis = WinogradConvolution::Axis;

struct Operands {
  explicit Operands(const WinogradConvolution& c)
      : shape(c),
        x(c.block(), c.images, c.channels, c.rows.size, c.cols.size, 1),
        dy(c.block(), c.images, c.outs, c.rows.outputs, c.cols.outputs, 2),
        weights(random_numbers({c.outs, c.channels, c.window, c.window}, 3)) {}

  double weight(std::int64_t o, std::int64_t c, std::int64_t row, std::int64_t col) const {
    return weights.data<float>()[((o * shape.channels + c) * shape.window + row) * shape.window + col];
  }
  // Of image pixels that a window meets: the first of result row or column 0.
  std::int64_t top(std::int64_t row) const { return row - shape.rows.pad_before; }
  std::int64_t left(std::int64_t col) const { return col - shape.cols.pad_before; }

  double result(std::int64_t n, std::int64_t o, std::int64_t row, std::int64_t col) const {
    double sum = 0;
    for (std::int64_t c = 0; c < shape.channels; ++c)
      for (std::int64_t i = 0; i < shape.window; ++i)
        for (std::int64_t j = 0; j < shape.window; ++j)
          sum += weight(o, c, i, j) * x.at(n, c, top(row) + i, left(col) + j);
    return sum;
  }
  double image_gradient(std::int64_t n, std::int64_t c, std::int64_t row, std::int64_t col) const {
    double sum = 0;
    for (std::int64_t o = 0; o < shape.outs; ++o)
      for (std::int64_t i = 0; i < shape.window; ++i)
        for (std::int64_t j = 0; j < shape.window; ++j)
          sum += weight(o, c, i, j) * dy.at(n, o, row - top(i), col - left(j));
    return sum;
  }
  double weight_gradient(std::int64_t o, std::int64_t c, std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t n = 0; n < shape.images; ++n)
      for (std::int64_t row = 0; row < shape.rows.outputs; ++row)
        for (std::int64_t col = 0; col < shape.cols.outputs; ++col)
          sum += static_cast<double>(x.at(n, c, top(row) + i, left(col) + j)) * dy.at(n, o, row, col);
    return sum;
  }

  WinogradConvolution shape;
  Planes x, dy;
  Tensor weights;
};

constexpr double kBound = 5e-6;

class Winograd : public testing::TestWithParam<WinogradConvolution> {};

TEST_P(Winograd, MakesTheResultsOfTheConvolution) {
  ASSERT_TRUE(GetParam().fits());
  expect_results(Operands(GetParam()), kBound);
}

TEST_P(Winograd, MakesTheGradientOfTheImages) { expect_image_gradient(Operands(GetParam()), kBound); }

TEST_P(Winograd, MakesTheGradientOfTheWeights) {
  const WinogradConvolution c = GetParam();
  const Operands in(c);
  Tensor dweights(DType::f32, in.weights.shape());
  c.weight_gradient(in.x.data(), in.dy.data(), dweights.data<float>(),
                    scratch(c.weight_gradient_scratch_bytes()).data<float>());
  Comparison with_f64(dweights.elements());
  const float* got = dweights.data<float>();
  for (std::int64_t o = 0; o < c.outs; ++o)
    for (std::int64_t i = 0; i < c.channels; ++i)
      for (std::int64_t row = 0; row < c.window; ++row)
        for (std::int64_t col = 0; col < c.window; ++col)
          with_f64.add(*got++, [&] { return in.weight_gradient(o, i, row, col); });
  EXPECT_LT(with_f64.error(), kBound);
}

// Tiles that reach over the edges, padding of 0 to 2, more tiles than pass at once, an odd number of blocks;
// weights whose values fit in no cache, and so many that all tiles are summed at once.
INSTANTIATE_TEST_SUITE_P(Shapes, Winograd,
                         testing::Values(WinogradConvolution{3, 1, 16, 16, {1, 1, 1}, {1, 1, 1}},
                                         WinogradConvolution{3, 2, 16, 48, {8, 8, 1}, {8, 8, 1}},
                                         WinogradConvolution{3, 3, 48, 32, {7, 5, 0}, {10, 8, 0}},
                                         WinogradConvolution{3, 2, 32, 16, {5, 7, 2}, {6, 8, 2}},
                                         WinogradConvolution{3, 2, 16, 32, {9, 8, 0}, {9, 10, 2}},
                                         WinogradConvolution{3, 9, 16, 16, {32, 32, 1}, {31, 31, 1}},
                                         WinogradConvolution{3, 8, 128, 64, {15, 15, 1}, {17, 17, 1}},
                                         WinogradConvolution{3, 1, 288, 272, {9, 9, 1}, {6, 6, 1}},
                                         WinogradConvolution{5, 2, 32, 48, {7, 7, 2}, {6, 6, 2}},
                                         WinogradConvolution{5, 3, 16, 16, {9, 5, 0}, {8, 10, 3}},
                                         WinogradConvolution{5, 1, 272, 256, {14, 14, 2}, {14, 14, 2}},
                                         WinogradConvolution{3, 1, 512, 528, {4, 4, 1}, {4, 4, 1}}),
                         [](const auto& info) {
                           const WinogradConvolution& c = info.param;
                           return "of" + std::to_string(c.window) + "n" + std::to_string(c.images) + "x" +
                                  std::to_string(c.channels) + "to" + std::to_string(c.outs) + "at" +
                                  std::to_string(c.rows.size) + "x" + std::to_string(c.cols.size);
                         });

TEST(WinogradTest, RoundsLittleOffResultsOfFewChannels) {
  expect_results(Operands({3, 2, 128, 32, {16, 16, 1}, {16, 16, 1}}), 1.2e-6);  // in one sum each: 1.6e-6
}

TEST(WinogradTest, TakesWholeBlocksAlone) {
  const std::int64_t block = WinogradConvolution::block();
  const Axis axis{8, 8, 1};
  EXPECT_TRUE((WinogradConvolution{3, 1, block, 3 * block, axis, axis}).fits());
  EXPECT_FALSE((WinogradConvolution{3, 0, block, block, axis, axis}).fits());
  if (block == 1) return;
  EXPECT_FALSE((WinogradConvolution{3, 1, block + 1, block, axis, axis}).fits());
  EXPECT_FALSE((WinogradConvolution{3, 1, block, block - 1, axis, axis}).fits());
}

TEST(WinogradTest, KeepsNanAndInfinityWithinTheirTile) {
  const WinogradConvolution c{3, 1, 16, 16, {12, 12, 1}, {12, 12, 1}};
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Operands in(c);
    in.x(0, 5, 2, 2) = bad;  // in the first tile alone, whose results are rows and columns 0 to 3
    Planes y(c.block(), 1, 16, 12, 12);
    c.results(in.x.data(), in.weights.data<float>(), y.data(),
              scratch(c.results_scratch_bytes()).data<float>());
    for (std::int64_t o = 0; o < 16; ++o)
      for (std::int64_t row = 0; row < 12; ++row)
        for (std::int64_t col = 0; col < 12; ++col) {
          // Where the windows meet it; and outside of its tile.
          const bool spoilt = row >= 1 && row <= 3 && col >= 1 && col <= 3, elsewhere = row > 3 || col > 3;
          const bool is_finite = std::isfinite(y(0, o, row, col));
          EXPECT_FALSE(spoilt && is_finite) << o << ", " << row << ", " << col;
          EXPECT_TRUE(is_finite || !elsewhere) << o << ", " << row << ", " << col;
        }
  }
}

}  // namespace
}  // namespace kolo::detail
