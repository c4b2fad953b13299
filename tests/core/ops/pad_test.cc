#include <kolo/core/ops/pad.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Paddings = std::vector<std::pair<std::int64_t, std::int64_t>>;

auto padded(Paddings paddings, double value = 0) {
  return [=](Scope& s, const Outputs& x) { return pad(s, x[0], paddings, value); };
}

TEST(Pad, PutsTheValueAroundTheTensor) {
  const Tensor y = run_op({Tensor::of<float>({2, 2}, {1, 2, 3, 4})}, padded({{1, 0}, {0, 2}}, -1));
  EXPECT_EQ(y.shape(), (Shape{3, 4}));
  EXPECT_THAT(y.span<float>(), ElementsAre(-1, -1, -1, -1, 1, 2, -1, -1, 3, 4, -1, -1));
}

TEST(Pad, TakesEveryElementSize) {
  EXPECT_THAT(run_op({Tensor::of<bool>({1}, {false})}, padded({{1, 0}}, 1)).span<bool>(),
              ElementsAre(true, false));
  EXPECT_THAT(run_op({Tensor::of<BFloat16>({1}, {BFloat16(2)})}, padded({{1, 0}}, 0.5)).span<BFloat16>(),
              ElementsAre(BFloat16(0.5f), BFloat16(2)));
  EXPECT_THAT(run_op({Tensor::of<std::int64_t>({1}, {7})}, padded({{0, 1}}, -3)).span<std::int64_t>(),
              ElementsAre(7, -3));
}

TEST(Pad, TakesScalarsAndEmptyTensors) {
  EXPECT_EQ(run_op({Tensor::scalar(5.0f)}, padded({})).value<float>(), 5);
  const Tensor y = run_op({Tensor(DType::f32, {0, 2})}, padded({{1, 1}, {0, 0}}, 3));
  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_THAT(y.span<float>(), Each(3));
}

TEST(Pad, AddsToTheDimensionsThatAreKnown) {
  expect_shape({{-1, 3}}, padded({{1, 2}, {0, 4}}), {-1, 7});
  expect_shape({Shape::unknown_rank()}, padded({{1, 2}, {0, 4}}), {-1, -1});
}

TEST(Pad, RefusesPaddingsThatDoNotFit) {
  const Tensor x(DType::f32, {2, 3});
  EXPECT_THAT(
      [&] {
        run_op({x}, padded({{1, 1}}));
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2,3]"), HasSubstr("1 paddings"))));
  EXPECT_THAT(
      [&] {
        run_op({x}, padded({{1, 1}, {-1, 0}}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("dimension 1 is -1 and 0")));
}

TEST(Pad, GradientIsCutOffAgain) {
  for (const bool known_shapes : {true, false})
    expect_gradients({test_numbers({2, 3})}, padded({{1, 0}, {2, 1}}, 0.5), {.known_shapes = known_shapes});
}

}  // namespace
}  // namespace kolo
