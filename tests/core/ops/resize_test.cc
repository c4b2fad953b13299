#include <kolo/core/ops/resize.h>

#include <gmock/gmock.h>

#include <limits>

#include <kolo/core/base/error.h>

#include "tests/core/ops/compare_tensors.h"

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

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
