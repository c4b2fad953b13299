#include <kolo/core/ops/slicing.h>

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

using Dims = std::vector<std::int64_t>;

auto sliced(Dims begin, Dims end, Dims strides = {}, StridedSliceMasks masks = {}) {
  return [=](Scope& s, const Outputs& x) { return strided_slice(s, x[0], begin, end, strides, masks); };
}

// 0 … 11 as 3 × 4.
Tensor counted() {
  Tensor x(DType::i32, {3, 4});
  for (std::int32_t i = 0; i < 12; ++i) x.data<std::int32_t>()[i] = i;
  return x;
}

TEST(StridedSlice, TakesEveryNthElement) {
  const Tensor y = run_op({counted()}, sliced({0, 1}, {3, 4}, {2, 2}));
  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_THAT(y.span<std::int32_t>(), ElementsAre(1, 3, 9, 11));
}

TEST(StridedSlice, CountsFromTheEndAndRunsBackwards) {
  EXPECT_THAT(run_op({counted()}, sliced({-1, -1}, {-3, -4}, {-1, -2})).span<std::int32_t>(),
              ElementsAre(11, 9, 7, 5));
}

// x[start:stop:step] of a row of 5 against NumPy's definition, spelt out.
TEST(StridedSlice, AgreesWithTheDefinitionForAllRanges) {
  const Tensor x = Tensor::of<std::int32_t>({5}, {0, 1, 2, 3, 4});
  for (std::int64_t begin = -7; begin <= 7; ++begin)
    for (std::int64_t end = -7; end <= 7; ++end)
      for (const std::int64_t step : {-3, -1, 1, 2}) {
        std::vector<std::int32_t> expected;
        const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? 5 : 4;
        const std::int64_t first = std::min(std::max(begin < 0 ? begin + 5 : begin, low), high);
        const std::int64_t last = std::min(std::max(end < 0 ? end + 5 : end, low), high);
        for (std::int64_t i = first; step > 0 ? i < last : i > last; i += step)
          expected.push_back(static_cast<std::int32_t>(i));
        const Tensor y = run_op({x}, sliced({begin}, {end}, {step}));
        EXPECT_THAT(y.span<std::int32_t>(), testing::ElementsAreArray(expected))
            << begin << ":" << end << ":" << step;
      }
}

TEST(StridedSlice, MasksLeaveOneEndOpen) {
  EXPECT_THAT(
      run_op({counted()}, sliced({7, 2}, {2, 7}, {1, 1}, {.begin = 1, .end = 2})).span<std::int32_t>(),
      ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(
      run_op({counted()}, sliced({1, 0}, {2, 0}, {1, -1}, {.begin = 2, .end = 2})).span<std::int32_t>(),
      ElementsAre(7, 6, 5, 4));
}

TEST(StridedSlice, ShrinksAndAddsDimensions) {
  const Tensor element = run_op({counted()}, sliced({1, -1}, {0, 0}, {1, 1}, {.shrink_axis = 3}));
  EXPECT_EQ(element.shape(), Shape());
  EXPECT_EQ(element.value<std::int32_t>(), 7);
  const Tensor column =
      run_op({counted()}, sliced({0, 0, 2}, {3, 0, 0}, {1, 1, 1}, {.new_axis = 2, .shrink_axis = 4}));
  EXPECT_EQ(column.shape(), (Shape{3, 1}));
  EXPECT_THAT(column.span<std::int32_t>(), ElementsAre(2, 6, 10));
}

TEST(StridedSlice, EllipsisStandsForAllOtherDimensions) {
  const Tensor last = run_op({counted()}, sliced({0, 3}, {0, 4}, {1, 1}, {.ellipsis = 1}));
  EXPECT_EQ(last.shape(), (Shape{3, 1}));
  EXPECT_THAT(last.span<std::int32_t>(), ElementsAre(3, 7, 11));
  EXPECT_EQ(run_op({counted()}, sliced({1, 0}, {2, 0}, {1, 1}, {.ellipsis = 2})).shape(), (Shape{1, 4}));
}

TEST(StridedSlice, LeavesDimensionsWithoutEntryWhole) {
  EXPECT_THAT(run_op({counted()}, sliced({2}, {3})).span<std::int32_t>(), ElementsAre(8, 9, 10, 11));
}

TEST(StridedSlice, TakesEmptyTensors) {
  EXPECT_EQ(run_op({Tensor(DType::f32, {0, 4})}, sliced({0, 1}, {5, 3})).shape(), (Shape{0, 2}));
  EXPECT_EQ(run_op({counted()}, sliced({2}, {1})).shape(), (Shape{0, 4}));
}

TEST(StridedSlice, KnowsWhatDoesNotDependOnUnknownDimensions) {
  expect_shape({{-1, 6, 5}}, sliced({0, 1, 2}, {4, -1, 3}, {1, 2, 1}, {.shrink_axis = 4}), {-1, 2});
  expect_shape({{-1, 6}}, sliced({3}, {0}, {1}, {.shrink_axis = 1}), {6});
  expect_shape({Shape::unknown_rank()}, sliced({0}, {1}), Shape::unknown_rank());
}

TEST(StridedSlice, RefusesWhatDoesNotFit) {
  EXPECT_THAT([] { run_op({counted()}, sliced({5}, {0}, {1}, {.shrink_axis = 1})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("slice index 5 of dimension 0 out of bounds")));
  EXPECT_THAT([] { run_op({counted()}, sliced({0}, {1}, {0})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("strides[0] must be non-zero")));
  EXPECT_THAT(
      [] {
        run_op({counted()}, sliced({0, 0, 0}, {1, 1, 1}));
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[3,4]"), HasSubstr("3 indices"))));
  EXPECT_THAT(
      [] {
        run_op({counted()}, sliced({0, 0}, {1}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("2 begins, 1 ends")));
}

TEST(StridedSlice, GradientIsZeroElsewhere) {
  for (const bool known_shapes : {true, false})
    expect_gradients({test_numbers({3, 5, 2})}, sliced({0, 4, 1}, {3, 0, 0}, {2, -2, 1}, {.shrink_axis = 4}),
                     {.known_shapes = known_shapes});
}

TEST(StridedSlice, GradientHasAGradientToo) {
  expect_gradients({test_numbers({5})}, [](Scope& s, const Outputs& x) {
    const Output y = strided_slice(s, x[0], {4}, {0}, {-2});
    return gradients(s, {y}, {x[0]}, {strided_slice(s, x[0], {0}, {2})})[0];
  });
}

auto part(std::int64_t index, std::int64_t parts) {
  return [=](Scope& s, const Outputs& x) { return batch_slice(s, x[0], index, parts); };
}

TEST(BatchSlice, GivesTheLastPartWhatIsLeft) {
  Tensor x(DType::i32, {11, 1});
  for (std::int32_t i = 0; i < 11; ++i) x.data<std::int32_t>()[i] = i;
  EXPECT_THAT(run_op({x}, part(0, 4)).span<std::int32_t>(), ElementsAre(0, 1));
  EXPECT_THAT(run_op({x}, part(2, 4)).span<std::int32_t>(), ElementsAre(4, 5));
  EXPECT_THAT(run_op({x}, part(3, 4)).span<std::int32_t>(), ElementsAre(6, 7, 8, 9, 10));
}

TEST(BatchSlice, IsEmptyWhereThereAreFewerRowsThanParts) {
  EXPECT_EQ(run_op({counted()}, part(0, 4)).shape(), (Shape{0, 4}));
  EXPECT_EQ(run_op({counted()}, part(3, 4)).shape(), (Shape{3, 4}));
}

TEST(BatchSlice, KnowsItsRowsFromThoseOfTheBatch) {
  expect_shape({{11, 2}}, part(3, 4), {5, 2});
  expect_shape({{-1, 2}}, part(1, 2), {-1, 2});
}

TEST(BatchSlice, HasGradients) {
  const Tensor x = Tensor::of<double>({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  expect_gradients({x}, part(0, 2));
  expect_gradients({x}, part(1, 2));
}

TEST(BatchSlice, GradientHasAGradientToo) {
  expect_gradients({test_numbers({5})}, [](Scope& s, const Outputs& x) {
    const Output y = batch_slice(s, x[0], 1, 2);
    return gradients(s, {y}, {x[0]}, {strided_slice(s, x[0], {0}, {3})})[0];
  });
}

TEST(BatchSlice, SaysWhichPartsThereAre) {
  EXPECT_THAT([] { run_op({counted()}, part(2, 2)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("part 2 of 2")));
  EXPECT_THAT([] { run_op({Tensor::scalar(1.0F)}, part(0, 2)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("scalar")));
}

TEST(Reverse, TurnsTheAxesThatWereAskedFor) {
  const auto turned = [](const Tensor& x, const Dims& axes) {
    return run_op({x}, [&](Scope& s, const Outputs& in) { return reverse(s, in[0], axes); });
  };
  const Tensor x = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(turned(x, {0}).span<float>(), ElementsAre(4, 5, 6, 1, 2, 3));
  EXPECT_THAT(turned(x, {-1}).span<float>(), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(turned(x, {0, 1}).span<float>(), ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_THAT(turned(x, {}).span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(turned(Tensor(DType::f32, {0, 2}), {0}).shape(), (Shape{0, 2}));
}

TEST(Reverse, KeepsTheShapeAndRefusesOtherAxes) {
  const auto build = [](Scope& s, const Outputs& x) { return reverse(s, x[0], {1}); };
  expect_shape({{-1, 3}}, build, {-1, 3});
  EXPECT_THAT([&] { run_op({Tensor(DType::f32, {3})}, build); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("axis 1"), HasSubstr("[3]"))));
  EXPECT_THAT(
      [] {
        run_op({Tensor(DType::f32, {2, 3})}, [](Scope& s, const Outputs& x) {
          return reverse(s, x[0], {1, -1});
        });
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("given twice")));
}

TEST(Reverse, GradientIsTurnedBack) {
  for (const bool known_shapes : {true, false})
    expect_gradients({test_numbers({2, 3})},
                     [](Scope& s, const Outputs& x) { return reverse(s, x[0], {-1}); },
                     {.known_shapes = known_shapes});
}

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
