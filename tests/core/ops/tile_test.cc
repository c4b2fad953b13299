#include <kolo/core/ops/tile.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Dims = std::vector<std::int64_t>;

auto tiled(Dims multiples) {
  return [=](Scope& s, const Outputs& x) { return tile(s, x[0], multiples); };
}
auto repeated(Shape shape) {
  return [=](Scope& s, const Outputs& x) { return broadcast_to(s, x[0], shape); };
}

TEST(Tile, RepeatsEachDimension) {
  const Tensor y = run_op({Tensor::of<float>({1, 2}, {1, 2})}, tiled({2, 2}));
  EXPECT_EQ(y.shape(), (Shape{2, 4}));
  EXPECT_THAT(y.span<float>(), ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
}

// Every element against its place by remainders.
TEST(Tile, AgreesWithTheDefinitionInThreeDimensions) {
  const Tensor x = test_numbers({2, 3, 2});
  const Tensor y = run_op({x}, tiled({3, 1, 2}));
  ASSERT_EQ(y.shape(), (Shape{6, 3, 4}));
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k)
        EXPECT_EQ(y.data<double>()[(i * 3 + j) * 4 + k], x.data<double>()[(i % 2 * 3 + j) * 2 + k % 2]);
}

TEST(Tile, TakesScalarsAndMultiplesOfZero) {
  EXPECT_EQ(run_op({Tensor::scalar<std::int8_t>(3)}, tiled({})).value<std::int8_t>(), 3);
  EXPECT_EQ(run_op({Tensor(DType::f32, {2, 3})}, tiled({0, 2})).shape(), (Shape{0, 6}));
}

TEST(Tile, MultipliesTheDimensionsThatAreKnown) {
  expect_shape({{-1, 3}}, tiled({2, 4}), {-1, 12});
  expect_shape({Shape::unknown_rank()}, tiled({2, 4}), {-1, -1});
}

TEST(Tile, RefusesMultiplesThatDoNotFit) {
  EXPECT_THAT(
      [] {
        run_op({Tensor(DType::f32, {2, 3})}, tiled({2}));
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2,3]"), HasSubstr("1 multiples"))));
  EXPECT_THAT([] { run_op({Tensor(DType::f32, {2})}, tiled({-1})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("dimension 0 is -1")));
}

TEST(Tile, GradientIsTheSumOverTheRepetitions) {
  for (const bool known_shapes : {true, false})
    expect_gradients({test_numbers({2, 3})}, tiled({2, 3}), {.known_shapes = known_shapes});
}

TEST(Tile, GradientHasAGradientToo) {
  expect_gradients({test_numbers({2})}, [](Scope& s, const Outputs& x) {
    return gradients(s, {tile(s, x[0], {2})}, {x[0]}, {tile(s, x[0], {2})})[0];
  });
}

TEST(BroadcastTo, RepeatsByNumPysRule) {
  const Tensor y = run_op({Tensor::of<std::int32_t>({2, 1}, {1, 2})}, repeated({2, 2, 3}));
  EXPECT_EQ(y.shape(), (Shape{2, 2, 3}));
  EXPECT_THAT(y.span<std::int32_t>(), ElementsAre(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2));
  EXPECT_THAT(run_op({Tensor::scalar(true)}, repeated({2})).span<bool>(), ElementsAre(true, true));
  EXPECT_EQ(run_op({Tensor::scalar(1.0f)}, repeated({0, 2})).shape(), (Shape{0, 2}));
}

TEST(BroadcastTo, KeepsTheDimensionsThatAreLeftOpen) {
  expect_shape({{-1, 1}}, repeated({2, -1, 3}), {2, -1, 3});
  expect_shape({{4, 1}}, repeated({-1, 3}), {4, 3});
}

TEST(BroadcastTo, RefusesDimensionsThatAreNeither) {
  for (const Shape& shape : {Shape{2, 4}, Shape{3}, Shape{-1, 2, 3}})
    EXPECT_THAT(
        [&] {
          run_op({Tensor(DType::f32, {2, 3})}, repeated(shape));
        },
        ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2,3]"), HasSubstr(shape.to_string()))));
}

TEST(BroadcastTo, GradientIsSummed) {
  for (const bool known_shapes : {true, false})
    expect_gradients({test_numbers({2, 1})}, repeated({3, 2, 2}), {.known_shapes = known_shapes});
}

}  // namespace
}  // namespace kolo
