#include <kolo/core/ops/pooling.h>

#include <gmock/gmock.h>

#include <limits>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>

#include "tests/core/ops/compare_tensors.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Case {
  Shape images;
  PoolOptions options;
  RowsCols outputs;     // as TensorFlow 1 computes them
  RowsCols pad_before;  // likewise
};

Tensor expected_pool(const Case& c, const Tensor& images, bool largest) {
  const auto& x = c.images;
  Tensor y(DType::f64, {x.dim(0), x.dim(1), c.outputs[0], c.outputs[1]});
  double* out = y.data<double>();
  for (std::int64_t plane = 0; plane < x.dim(0) * x.dim(1); ++plane)
    for (std::int64_t h = 0; h < c.outputs[0]; ++h)
      for (std::int64_t w = 0; w < c.outputs[1]; ++w) {
        double sum = 0, most = -std::numeric_limits<double>::infinity(), count = 0;
        for (std::int64_t r = 0; r < c.options.window[0]; ++r)
          for (std::int64_t q = 0; q < c.options.window[1]; ++q) {
            const std::int64_t row = h * c.options.strides[0] + r - c.pad_before[0];
            const std::int64_t col = w * c.options.strides[1] + q - c.pad_before[1];
            if (row < 0 || row >= x.dim(2) || col < 0 || col >= x.dim(3)) continue;
            const double value = images.data<double>()[(plane * x.dim(2) + row) * x.dim(3) + col];
            sum += value, most = std::max(most, value), count += 1;
          }
        *out++ = largest ? most : sum / count;
      }
  return y;
}

class Pooling : public testing::TestWithParam<Case> {
 protected:
  const Tensor images_ = test_numbers(GetParam().images, 1);
  static Output build_max(Scope& s, const Outputs& in) { return max_pool(s, in[0], GetParam().options); }
  static Output build_mean(Scope& s, const Outputs& in) { return avg_pool(s, in[0], GetParam().options); }
};

TEST_P(Pooling, TakesTheLargestUnderTheWindow) {
  expect_both_types({images_}, expected_pool(GetParam(), images_, true), 1e-7, build_max);
}

TEST_P(Pooling, TakesTheMeanOfTheImageUnderTheWindow) {
  expect_both_types({images_}, expected_pool(GetParam(), images_, false), 1e-6, build_mean);
}

TEST_P(Pooling, HasTheGradientOfItsValues) {
  if (images_.elements() > 300) GTEST_SKIP() << "central differences of small images are enough";
  expect_gradients({images_}, build_max);
  expect_gradients({images_}, build_mean);
}

TEST_P(Pooling, HasTheSameGradientInBothTypes) {
  expect_same_gradients({images_}, 2e-6, build_max);
  expect_same_gradients({images_}, 2e-6, build_mean);
}

constexpr Padding kSame = Padding::same, kValid = Padding::valid;
INSTANTIATE_TEST_SUITE_P(
    Windows, Pooling,
    testing::Values(
        Case{{2, 3, 6, 4}, {{2, 2}, {2, 2}, kSame}, {3, 2}, {0, 0}},
        Case{{2, 3, 5, 7}, {{2, 2}, {2, 2}, kSame}, {3, 4}, {0, 0}},   // the last window overhangs
        Case{{2, 3, 5, 7}, {{2, 2}, {2, 2}, kValid}, {2, 3}, {0, 0}},  // the last row and column take no part
        Case{{1, 2, 6, 5}, {{3, 2}, {1, 1}, kSame}, {6, 5}, {1, 0}},   // windows overlap
        Case{{1, 2, 7, 6}, {{4, 3}, {2, 3}, kSame}, {4, 2}, {1, 0}},
        Case{{1, 17, 4, 4}, {{1, 1}, {2, 2}, kSame}, {2, 2}, {0, 0}},         // steps beyond the window
        Case{{0, 2, 4, 4}, {{2, 2}, {2, 2}, kSame}, {2, 2}, {0, 0}},          // an empty batch
        Case{{1, 1, 18, 17}, {{17, 16}, {1, 1}, kSame}, {18, 17}, {8, 7}}));  // more cells than a byte counts

TEST(MaxPoolGradient, GoesToTheFirstOfEqualElements) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Graph graph;
    Scope s(graph);
    const auto x = ones(s, dtype, {1, 1, 2, 4});
    const Tensor dx = detail::as_double(Session(graph).run(gradients(s, {max_pool(s, x)}, {x})[0]));
    EXPECT_THAT(dx.span<double>(), ElementsAre(1, 0, 1, 0, 0, 0, 0, 0)) << name(dtype);
  }
}

TEST(GlobalPooling, TakesTheLargestAndTheMeanOfEachImage) {
  const Tensor x = Tensor::of<double>({1, 2, 2, 2}, {1, 2, 3, 6, -1, -2, -3, -6});
  const auto largest = [](Scope& s, const Outputs& in) { return global_max_pool(s, in[0]); };
  const auto mean = [](Scope& s, const Outputs& in) { return global_avg_pool(s, in[0]); };
  expect_both_types({x}, Tensor::of<double>({1, 2}, {6, -1}), 1e-7, largest);
  expect_both_types({x}, Tensor::of<double>({1, 2}, {3, -3}), 1e-7, mean);
  expect_gradients({x}, largest);
  expect_gradients({x}, mean);
  EXPECT_THAT(
      [&] {
        expect_shape({{3, 3}}, mean, {});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("[3,3]")));
}

TEST(PoolingErrors, RefusesOtherRanksAndWindowsThatDoNotFit) {
  Graph graph;
  Scope s(graph);
  const auto x = zeros(s, DType::f32, {1, 1, 3, 3}), m = zeros(s, DType::f32, {3, 3});
  EXPECT_THAT([&] { max_pool(s, m); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("[3,3]")));
  EXPECT_THAT(
      [&] {
        avg_pool(s, x, {.window = {4, 4}, .padding = Padding::valid});
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("Negative dimension size caused by subtracting 4 from 3")));
  EXPECT_THAT(
      [&] {
        max_pool(s, x, {.strides = {0, 1}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("at least 1")));
}

Tensor row(std::initializer_list<double> numbers) {
  return Tensor::of<double>({1, 1, 1, static_cast<std::int64_t>(numbers.size())}, numbers);
}

auto to(RowsCols size, ResizeMethod method, ResizeOptions options = {}) {
  return [=](Scope& s, const Outputs& in) { return resize(s, in[0], size, method, options); };
}

constexpr ResizeMethod kNearest = ResizeMethod::nearest, kBilinear = ResizeMethod::bilinear;
constexpr ResizeOptions kAligned{.align_corners = true}, kCenters{.half_pixel_centers = true};

// The places follow from the three formulas of the header: i · 2/5, i · 1/4, (i + 0.5) · 2/5 − 0.5, …
TEST(Resize, TakesTheNearestElement) {
  const Tensor two = row({10, 20}), five = row({0, 1, 2, 3, 4});
  expect_both_types({two}, row({10, 10, 10, 20, 20}), 0, to({1, 5}, kNearest));
  expect_both_types({two}, row({10, 10, 20, 20, 20}), 0, to({1, 5}, kNearest, kAligned));
  expect_both_types({two}, row({10, 10, 20, 20, 20}), 0, to({1, 5}, kNearest, kCenters));
  expect_both_types({five}, row({0, 2}), 0, to({1, 2}, kNearest));
  expect_both_types({five}, row({1, 3}), 0, to({1, 2}, kNearest, kCenters));
  expect_both_types({five}, row({0, 4}), 0, to({1, 2}, kNearest, kAligned));
}

TEST(Resize, MixesTheNeighbours) {
  const Tensor two = row({10, 20}), five = row({0, 1, 2, 3, 4});
  expect_both_types({two}, row({10, 14, 18, 20, 20}), 1e-6, to({1, 5}, kBilinear));
  expect_both_types({two}, row({10, 12.5, 15, 17.5, 20}), 1e-6, to({1, 5}, kBilinear, kAligned));
  expect_both_types({two}, row({10, 11, 15, 19, 20}), 1e-6, to({1, 5}, kBilinear, kCenters));
  expect_both_types({five}, row({0, 2.5}), 1e-6, to({1, 2}, kBilinear));
  expect_both_types({five}, row({0.75, 3.25}), 1e-6, to({1, 2}, kBilinear, kCenters));
}

TEST(Resize, TreatsRowsAsColumns) {
  const Tensor image = Tensor::of<double>({1, 1, 2, 2}, {0, 1, 2, 3});
  expect_both_types({image}, Tensor::of<double>({1, 1, 3, 3}, {0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3}), 1e-6,
                    to({3, 3}, kBilinear, kAligned));
}

TEST(Resize, KeepsInfinityToItself) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const ResizeMethod method : {kNearest, kBilinear}) {
    const Tensor y = run_op({row({1, infinity})}, to({1, 2}, method));
    EXPECT_EQ(y.data<double>()[0], 1);
    EXPECT_EQ(y.data<double>()[1], infinity);
  }
}

TEST(Resize, HasTheGradientOfItsValues) {
  for (const ResizeMethod method : {kNearest, kBilinear})
    for (const ResizeOptions options : {ResizeOptions{}, kAligned, kCenters})
      for (const RowsCols size : {RowsCols{5, 7}, RowsCols{2, 3}, RowsCols{1, 1}}) {
        expect_gradients({test_numbers({2, 3, 3, 4})}, to(size, method, options));
        expect_same_gradients({test_numbers({2, 3, 3, 4})}, 1e-6, to(size, method, options));
      }
  expect_gradients({test_numbers({1, 2, 3, 4})}, to({5, 5}, kBilinear), {.known_shapes = false});
}

TEST(Resize, TakesAnEmptyBatch) {
  expect_both_types({test_numbers({0, 2, 3, 3})}, Tensor(DType::f64, {0, 2, 5, 5}), 0, to({5, 5}, kBilinear));
}

TEST(ResizeShape, HasTheSizeThatWasAskedFor) {
  expect_shape({Shape::unknown_rank()}, to({5, 7}, kNearest), {-1, -1, 5, 7});
  expect_shape({{-1, 3, -1, 4}}, to({5, 7}, kNearest), {-1, 3, 5, 7});
}

TEST(ResizeErrors, RefuseWhatHasNoMeaning) {
  Graph graph;
  Scope s(graph);
  const Output image = zeros(s, DType::f32, {1, 1, 3, 3}), matrix = zeros(s, DType::f32, {3, 3});
  EXPECT_THAT(
      [&] {
        resize(s, matrix, {2, 2}, kNearest);
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("[3,3]")));
  EXPECT_THAT(
      [&] {
        resize(s, image, {0, 2}, kNearest);
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("0 rows and 2 columns")));
  EXPECT_THAT(
      [&] {
        resize(s, image, {2, 2}, kNearest, {.align_corners = true, .half_pixel_centers = true});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("align_corners must be False")));
}

}  // namespace
}  // namespace kolo
