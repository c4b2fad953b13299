#include <gmock/gmock.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/conv2d.h>

#include "tests/core/ops/compare_tensors.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Case {
  Shape images, weights;
  Conv2dOptions options;
  RowsCols outputs;     // as TensorFlow 1 computes them
  RowsCols pad_before;  // likewise
};

// y[n][o][h][w] = Σ x[n][c][h·sh + r − ph][w·sw + q − pw] · weights[o][c][r][q], zero outside the image
Tensor expected_convolution(const Case& c, const Tensor& images, const Tensor& weights) {
  const auto &x = c.images, &k = c.weights;
  Tensor y(DType::f64, {x.dim(0), k.dim(0), c.outputs[0], c.outputs[1]});
  double* out = y.data<double>();
  for (std::int64_t n = 0; n < x.dim(0); ++n)
    for (std::int64_t o = 0; o < k.dim(0); ++o)
      for (std::int64_t h = 0; h < c.outputs[0]; ++h)
        for (std::int64_t w = 0; w < c.outputs[1]; ++w) {
          double sum = 0;
          for (std::int64_t ch = 0; ch < x.dim(1); ++ch)
            for (std::int64_t r = 0; r < k.dim(2); ++r)
              for (std::int64_t q = 0; q < k.dim(3); ++q) {
                const std::int64_t row = h * c.options.strides[0] + r - c.pad_before[0];
                const std::int64_t col = w * c.options.strides[1] + q - c.pad_before[1];
                if (row < 0 || row >= x.dim(2) || col < 0 || col >= x.dim(3)) continue;
                sum += images.data<double>()[((n * x.dim(1) + ch) * x.dim(2) + row) * x.dim(3) + col] *
                       weights.data<double>()[((o * k.dim(1) + ch) * k.dim(2) + r) * k.dim(3) + q];
              }
          *out++ = sum;
        }
  return y;
}

class Conv2d : public testing::TestWithParam<Case> {
 protected:
  const Tensor images_ = test_numbers(GetParam().images, 1);
  const Tensor weights_ = test_numbers(GetParam().weights, 2);
  static Output build(Scope& s, const Outputs& in) { return conv2d(s, in[0], in[1], GetParam().options); }
  // Four roundings of f32 (6e-8) for each term of the longest sum of the three passes: of both operands, the
  // product and the partial sum. A misplaced weight is off by 1e-2 and more.
  static double f32_tolerance() {
    const Case& c = GetParam();
    const std::int64_t window = c.weights.dim(2) * c.weights.dim(3);
    const std::int64_t results = c.images.dim(0) * c.outputs[0] * c.outputs[1];
    return 4 * 6e-8 *
           static_cast<double>(
               std::max({c.images.dim(1) * window, c.weights.dim(0) * window, results, std::int64_t{16}}));
  }
};

TEST_P(Conv2d, IsTheSumOverWindowAndChannels) {
  expect_both_types({images_, weights_}, expected_convolution(GetParam(), images_, weights_), f32_tolerance(),
                    build);
}

TEST_P(Conv2d, HasTheGradientOfItsValues) {
  if (images_.elements() + weights_.elements() > 400)
    GTEST_SKIP() << "central differences of small images are enough";
  expect_gradients({images_, weights_}, build, {.tolerance = 1e-6});
}

TEST_P(Conv2d, HasTheSameGradientInBothTypes) {
  expect_same_gradients({images_, weights_}, f32_tolerance(), build);
}

constexpr Padding kSame = Padding::same, kValid = Padding::valid;
INSTANTIATE_TEST_SUITE_P(
    Windows, Conv2d,
    testing::Values(
        Case{{1, 1, 5, 5}, {1, 1, 1, 1}, {{1, 1}, kSame}, {5, 5}, {0, 0}},  // one weight
        Case{{2, 3, 5, 7}, {4, 3, 3, 3}, {{1, 1}, kSame}, {5, 7}, {1, 1}},  // odd window
        Case{{2, 3, 5, 7}, {4, 3, 3, 3}, {{1, 1}, kValid}, {3, 5}, {0, 0}},
        Case{{2, 2, 6, 5}, {3, 2, 2, 4}, {{1, 1}, kSame}, {6, 5}, {0, 1}},   // even: the odd zero at the end
        Case{{2, 2, 6, 5}, {3, 2, 4, 2}, {{2, 2}, kSame}, {3, 3}, {1, 0}},   // even, in steps of 2
        Case{{2, 2, 7, 8}, {3, 2, 4, 2}, {{2, 3}, kValid}, {2, 3}, {0, 0}},  // the image's end is not reached
        Case{{2, 3, 6, 6}, {5, 3, 1, 1}, {{2, 2}, kSame}, {3, 3}, {0, 0}},   // steps beyond the window
        Case{{1, 2, 5, 5}, {2, 2, 7, 7}, {{1, 1}, kSame}, {5, 5}, {3, 3}},   // a window larger than the image
        Case{{0, 2, 5, 5}, {2, 2, 3, 3}, {{1, 1}, kSame}, {5, 5}, {1, 1}},   // an empty batch
        Case{{3, 17, 9, 9}, {33, 17, 5, 5}, {{1, 1}, kSame}, {9, 9}, {2, 2}}));  // beyond a block of channels

TEST(Conv2dErrors, NamesBothShapesWhenChannelsDiffer) {
  Graph graph;
  Scope s(graph);
  const auto x = zeros(s, DType::f32, {1, 3, 8, 8}), w = zeros(s, DType::f32, {4, 2, 3, 3});
  EXPECT_THAT([&] { conv2d(s, x, w); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("[1,3,8,8]"), HasSubstr("[4,2,3,3]"), HasSubstr("(3)"), HasSubstr("(2)"))));
}

TEST(Conv2dErrors, RefusesAWindowThatDoesNotFitIntoAValidImage) {
  Graph graph;
  Scope s(graph);
  const auto x = zeros(s, DType::f32, {1, 1, 3, 3}), w = zeros(s, DType::f32, {1, 1, 5, 5});
  EXPECT_THAT([&] { conv2d(s, x, w, {.padding = Padding::valid}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Negative dimension size caused by subtracting 5 from 3")));
}

TEST(Conv2dErrors, RefusesMatricesAndStridesBelowOne) {
  Graph graph;
  Scope s(graph);
  const auto x = zeros(s, DType::f32, {1, 1, 3, 3}), w = zeros(s, DType::f32, {1, 1, 3, 3}),
             m = zeros(s, DType::f32, {3, 3});
  EXPECT_THAT([&] { conv2d(s, m, w); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("[N,C,H,W]")));
  EXPECT_THAT(
      [&] {
        conv2d(s, x, w, {.strides = {1, 0}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("strides are 1 and 0")));
}

TEST(Conv2dShape, KeepsTheUnknownBatch) {
  Graph graph;
  Scope s(graph);
  const auto x = placeholder(s, DType::f32, {-1, 1, 28, 28}), w = zeros(s, DType::f32, {32, 1, 5, 5});
  EXPECT_EQ(conv2d(s, x, w, {.strides = {2, 2}}).shape(), (Shape{-1, 32, 14, 14}));
}

}  // namespace
}  // namespace kolo
