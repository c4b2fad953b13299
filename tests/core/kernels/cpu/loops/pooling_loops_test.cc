#include <kolo/core/kernels/cpu/loops/pooling_loops.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace kolo::detail {
namespace {

struct Plane {
  WindowAxis rows, cols;
  std::int64_t block;

  std::size_t images() const { return static_cast<std::size_t>(rows.size * cols.size * block); }
  std::size_t results() const { return static_cast<std::size_t>(rows.outputs * cols.outputs * block); }
};

Plane plane(std::int64_t block, RowsCols size, RowsCols window, RowsCols stride, Padding padding) {
  return {window_axis(size[0], window[0], stride[0], padding),
          window_axis(size[1], window[1], stride[1], padding), block};
}

// Few values, so that there are equal ones in a window.
std::vector<float> images_of(const Plane& p) {
  std::vector<float> x(p.images());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 37 + i / 11) % 7) - 4;
  return x;
}

struct Pooled {
  std::vector<float> y;
  std::vector<std::uint8_t> cells;
};
Pooled pooled(const Plane& p, const std::vector<float>& x) {
  Pooled result{std::vector<float>(p.results()), std::vector<std::uint8_t>(p.results())};
  max_pool_loops(p.block).forward(x.data(), p.rows, p.cols, result.y.data(), result.cells.data());
  return result;
}

class MaxPool : public testing::TestWithParam<Plane> {};

TEST_P(MaxPool, FindsTheFirstOfTheLargestInEachWindow) {
  const Plane p = GetParam();
  const std::vector<float> x = images_of(p);
  const Pooled result = pooled(p, x);
  std::size_t at = 0;
  for (std::int64_t i = 0; i < p.rows.outputs; ++i)
    for (std::int64_t k = 0; k < p.cols.outputs; ++k)
      for (std::int64_t channel = 0; channel < p.block; ++channel, ++at) {
        float largest = -std::numeric_limits<float>::infinity();
        std::int64_t cell = -1;
        for (std::int64_t n = 0; n < p.rows.window * p.cols.window; ++n) {
          const std::int64_t row = i * p.rows.stride - p.rows.pad_before + n / p.cols.window,
                             col = k * p.cols.stride - p.cols.pad_before + n % p.cols.window;
          if (row < 0 || row >= p.rows.size || col < 0 || col >= p.cols.size) continue;
          const float value = x[static_cast<std::size_t>((row * p.cols.size + col) * p.block + channel)];
          if (value > largest) largest = value, cell = n;
        }
        ASSERT_EQ(result.y[at], largest) << at;
        ASSERT_EQ(result.cells[at], cell) << at;
      }
}

TEST_P(MaxPool, AddsEachGradientToWhatItsWindowChose) {
  const Plane p = GetParam();
  const Pooled forward = pooled(p, images_of(p));
  std::vector<float> dy(p.results()), expected(p.images(), 0), dx(p.images(), -1);
  for (std::size_t i = 0; i < dy.size(); ++i) {
    dy[i] = static_cast<float>(i % 1000 + 1);  // sums are exact
    const auto pixel = static_cast<std::int64_t>(i) / p.block,
               channel = static_cast<std::int64_t>(i) % p.block, cell = std::int64_t{forward.cells[i]};
    const std::int64_t row =
                           pixel / p.cols.outputs * p.rows.stride - p.rows.pad_before + cell / p.cols.window,
                       col =
                           pixel % p.cols.outputs * p.cols.stride - p.cols.pad_before + cell % p.cols.window;
    expected[static_cast<std::size_t>((row * p.cols.size + col) * p.block + channel)] += dy[i];
  }
  max_pool_loops(p.block).backward(forward.cells.data(), dy.data(), p.rows, p.cols, dx.data());
  EXPECT_EQ(dx, expected);
}

INSTANTIATE_TEST_SUITE_P(Windows, MaxPool,
                         testing::Values(plane(16, {6, 10}, {2, 2}, {2, 2}, Padding::valid),
                                         plane(8, {6, 10}, {2, 2}, {2, 2}, Padding::valid),
                                         plane(16, {5, 7}, {2, 2}, {2, 2}, Padding::same),
                                         plane(8, {5, 7}, {2, 2}, {1, 1}, Padding::same),
                                         plane(16, {9, 8}, {3, 3}, {2, 2}, Padding::same),
                                         plane(8, {13, 12}, {4, 3}, {5, 2},
                                               Padding::valid),  // gaps, and what is left out
                                         plane(16, {2, 2}, {15, 17}, {1, 1}, Padding::same),
                                         plane(16, {1, 1}, {1, 1}, {1, 1}, Padding::valid)));

// Wherever it stands, and whatever comes behind it.
TEST(MaxPoolLoops, GiveNanForAWindowWithNan) {
  for (const RowsCols window : {RowsCols{2, 2}, RowsCols{3, 3}})
    for (std::int64_t where = 0; where < window[0] * window[1]; ++where) {
      const Plane p = plane(16, window, window, window, Padding::valid);
      std::vector<float> x(p.images(), 1);
      const auto at = static_cast<std::size_t>(where * 16 + 5);
      x[at] = std::numeric_limits<float>::quiet_NaN();
      const Pooled result = pooled(p, x);
      for (std::size_t channel = 0; channel < 16; ++channel)
        EXPECT_EQ(std::isnan(result.y[channel]), channel == 5) << where;
      EXPECT_EQ(result.cells[5], where);
    }
}

TEST(MaxPoolLoops, GiveMinusInfinityForAWindowOfIt) {
  const Plane p = plane(8, {2, 2}, {2, 2}, {2, 2}, Padding::valid);
  const Pooled result = pooled(p, std::vector<float>(p.images(), -std::numeric_limits<float>::infinity()));
  for (const float y : result.y) EXPECT_EQ(y, -std::numeric_limits<float>::infinity());
  for (const std::uint8_t cell : result.cells) EXPECT_EQ(cell, 0);
}

}  // namespace
}  // namespace kolo::detail
