#include <kolo/core/ops/convolution.h>

#include <gmock/gmock.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>

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

// y[n][o][h][w] = Σ x[n][c][h·sh + r − ph][w·sw + q − pw] · weights[o][c][r][q], zero outside the image; c
// counts from the first channel of o's group.
Tensor expected_convolution(const Case& c, const Tensor& images, const Tensor& weights) {
  const auto &x = c.images, &k = c.weights;
  Tensor y(DType::f64, {x.dim(0), k.dim(0), c.outputs[0], c.outputs[1]});
  double* out = y.data<double>();
  for (std::int64_t n = 0; n < x.dim(0); ++n)
    for (std::int64_t o = 0; o < k.dim(0); ++o)
      for (std::int64_t h = 0; h < c.outputs[0]; ++h)
        for (std::int64_t w = 0; w < c.outputs[1]; ++w) {
          double sum = 0;
          const std::int64_t first = o / (k.dim(0) / c.options.groups) * k.dim(1);
          for (std::int64_t ch = 0; ch < k.dim(1); ++ch)
            for (std::int64_t r = 0; r < k.dim(2); ++r)
              for (std::int64_t q = 0; q < k.dim(3); ++q) {
                const std::int64_t row = h * c.options.strides[0] + r - c.pad_before[0];
                const std::int64_t col = w * c.options.strides[1] + q - c.pad_before[1];
                if (row < 0 || row >= x.dim(2) || col < 0 || col >= x.dim(3)) continue;
                sum +=
                    images.data<double>()[((n * x.dim(1) + first + ch) * x.dim(2) + row) * x.dim(3) + col] *
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
        Case{{2, 4, 5, 5}, {6, 2, 3, 3}, {{1, 1}, kSame, 2}, {5, 5}, {1, 1}},   // two groups
        Case{{2, 3, 5, 4}, {6, 1, 3, 2}, {{2, 1}, kValid, 3}, {2, 3}, {0, 0}},  // a group for each channel
        Case{{2, 16, 9, 9}, {16, 1, 3, 3}, {{1, 1}, kSame, 16}, {9, 9}, {1, 1}},
        Case{{3, 17, 9, 9}, {33, 17, 5, 5}, {{1, 1}, kSame}, {9, 9}, {2, 2}}));  // beyond a block of channels

TEST(DepthwiseConv2d, GivesEachChannelItsOwnFilters) {
  const Tensor x = test_numbers({2, 3, 5, 5}, 1), filters = test_numbers({3, 2, 3, 3}, 2);
  const Case c{{2, 3, 5, 5}, {6, 1, 3, 3}, {{1, 1}, kSame, 3}, {5, 5}, {1, 1}};
  const auto build = [](Scope& s, const Outputs& in) { return depthwise_conv2d(s, in[0], in[1]); };
  expect_both_types({x, filters}, expected_convolution(c, x, filters), 1e-5, build);
  expect_gradients({x, filters}, build, {.tolerance = 1e-6});
}

struct TransposeCase {
  Shape images, weights;
  Conv2dTransposeOptions options;
  RowsCols outputs;
  RowsCols pad_before;  // of the convolution whose gradient it is
};

class Conv2dTranspose : public testing::TestWithParam<TransposeCase> {
 protected:
  const Tensor images_ = test_numbers(GetParam().images, 1), weights_ = test_numbers(GetParam().weights, 2);
  static Output build(Scope& s, const Outputs& in) {
    return conv2d_transpose(s, in[0], in[1], GetParam().options);
  }
};

// Each element of the image lays the window, weighted, over the result.
TEST_P(Conv2dTranspose, AddsUpTheWindowsOfAllElements) {
  const auto& [x, k, options, outputs, pad_before] = GetParam();
  Tensor y = Tensor::zeros(DType::f64, {x.dim(0), k.dim(1), outputs[0], outputs[1]});
  for (std::int64_t i = 0; i < images_.elements(); ++i) {
    const std::int64_t w = i % x.dim(3), h = i / x.dim(3) % x.dim(2),
                       c = i / (x.dim(3) * x.dim(2)) % x.dim(1), n = i / (x.dim(3) * x.dim(2) * x.dim(1));
    for (std::int64_t o = 0; o < k.dim(1); ++o)
      for (std::int64_t r = 0; r < k.dim(2); ++r)
        for (std::int64_t q = 0; q < k.dim(3); ++q) {
          const std::int64_t row = h * options.strides[0] + r - pad_before[0];
          const std::int64_t col = w * options.strides[1] + q - pad_before[1];
          if (row < 0 || row >= outputs[0] || col < 0 || col >= outputs[1]) continue;
          y.data<double>()[((n * k.dim(1) + o) * outputs[0] + row) * outputs[1] + col] +=
              images_.data<double>()[i] *
              weights_.data<double>()[((c * k.dim(1) + o) * k.dim(2) + r) * k.dim(3) + q];
        }
  }
  expect_both_types({images_, weights_}, y, 1e-5, build);
}

TEST_P(Conv2dTranspose, HasTheGradientOfItsValues) {
  expect_gradients({images_, weights_}, build, {.tolerance = 1e-6});
  expect_same_gradients({images_, weights_}, 1e-5, build);
}

INSTANTIATE_TEST_SUITE_P(
    Windows, Conv2dTranspose,
    testing::Values(TransposeCase{{2, 3, 3, 4}, {3, 2, 3, 3}, {{1, 1}, kSame}, {3, 4}, {1, 1}},
                    TransposeCase{{2, 3, 3, 4}, {3, 2, 3, 3}, {{2, 2}, kSame}, {6, 8}, {0, 0}},
                    TransposeCase{{2, 3, 3, 4}, {3, 2, 3, 3}, {{2, 2}, kSame, {5, 7}}, {5, 7}, {1, 1}},
                    TransposeCase{{1, 2, 3, 4}, {2, 3, 2, 3}, {{2, 1}, kValid}, {6, 6}, {0, 0}},
                    TransposeCase{{1, 2, 3, 2}, {2, 1, 1, 2}, {{3, 2}, kValid, {7, 4}}, {7, 4}, {0, 0}},
                    TransposeCase{{0, 2, 3, 3}, {2, 3, 3, 3}, {{1, 1}, kSame}, {3, 3}, {1, 1}}));

TEST(Conv2dTransposeErrors, RefuseASizeThatDoesNotLeadBack) {
  Graph graph;
  Scope s(graph);
  const auto x = zeros(s, DType::f32, {1, 2, 4, 4}), w = zeros(s, DType::f32, {2, 3, 3, 3});
  EXPECT_THAT(
      [&] {
        conv2d_transpose(s, x, w, {.strides = {2, 2}, .output_size = {9, 8}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("output_size is 9 for 4")));
  EXPECT_THAT([&] { conv2d_transpose(s, w, w); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("(3)")));
}

TEST(Conv2dErrors, RefusesGroupsThatDoNotDivideTheFilters) {
  Graph graph;
  Scope s(graph);
  const auto x = zeros(s, DType::f32, {1, 4, 8, 8}), w = zeros(s, DType::f32, {3, 2, 3, 3});
  EXPECT_THAT([&] { conv2d(s, x, w, {.groups = 2}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("for 2 groups")));
}

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
  const auto back = zeros(s, DType::f32, {1, 8, 3, 3});
  EXPECT_EQ(conv2d_transpose(s, x, back, {.strides = {2, 2}}).shape(), (Shape{-1, 8, 56, 56}));
}

}  // namespace
}  // namespace kolo
