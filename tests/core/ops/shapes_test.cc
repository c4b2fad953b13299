#include <kolo/core/ops/shapes.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/math.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor reshaped(const Tensor& x, const Shape& shape, bool known_shapes = true) {
  return run_op(
      {x}, [&](Scope& s, const Outputs& in) { return reshape(s, in[0], shape); }, known_shapes);
}

TEST(Reshape, KeepsElementsAndInfersOneDimension) {
  const Tensor y = reshaped(Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), {3, -1});
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  EXPECT_THAT(y.span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(reshaped(Tensor::scalar(1.0f), {1, 1}).shape(), (Shape{1, 1}));
  EXPECT_EQ(reshaped(Tensor(DType::f32, {0, 4}), {0, 7}).shape(), (Shape{0, 7}));
}

TEST(Reshape, ResolvesUnknownBatchWhenItRuns) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1, 2, 2}), flat = reshape(s, x, {-1, 4});
  EXPECT_EQ(flat.shape(), (Shape{-1, 4}));
  Session session(graph);
  EXPECT_EQ(session.run(flat, {{x, Tensor::zeros(DType::f32, {5, 2, 2})}}).shape(), (Shape{5, 4}));
  EXPECT_EQ(session.run(flat, {{x, Tensor::zeros(DType::f32, {1, 2, 2})}}).shape(), (Shape{1, 4}));
}

TEST(Reshape, NamesBothCountsThatDiffer) {
  for (const bool known_shapes : {true, false})
    EXPECT_THAT(
        [&] {
          reshaped(Tensor(DType::f32, {2, 3}), {4}, known_shapes);
        },
        ThrowsMessage<InvalidArgumentError>(
            HasSubstr("Cannot reshape a tensor with 6 elements to shape [4] (4 elements)")));
  EXPECT_THAT(
      [] {
        reshaped(Tensor(DType::f32, {2, 3}), {-1, 4});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("[2,3]")));
  EXPECT_THAT(
      [] {
        reshaped(Tensor(DType::f32, {2, 3}), {-1, -1});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Only one input size may be -1")));
}

TEST(Reshape, GradientHasTheInputsShape) {
  for (const bool known_shapes : {true, false}) {
    expect_gradients({test_numbers({2, 3})},
                     [](Scope& s, const Outputs& x) {
                       return reshape(s, square(s, x[0]), {3, 2});
                     },
                     {.known_shapes = known_shapes});
    expect_gradients({test_numbers({2, 1, 3})},
                     [](Scope& s, const Outputs& x) { return squeeze(s, square(s, x[0]), {1}); },
                     {.known_shapes = known_shapes});
    expect_gradients({test_numbers({2, 3})},
                     [](Scope& s, const Outputs& x) { return expand_dims(s, square(s, x[0]), -1); },
                     {.known_shapes = known_shapes});
  }
}

TEST(Reshape, LikeAnotherTensorTakesItsShape) {
  const auto like = [](Scope& s, const Outputs& x) { return reshape_like(s, x[0], x[1]); };
  expect_shape({{-1}, {-1, 3}}, like, {-1, 3});
  expect_gradients({test_numbers({2, 3}), test_numbers({6})}, like, {.known_shapes = false, .constant = {1}});
}

TEST(Reshape, InfersWhatFollowsFromTheInput) {
  expect_shape({{2, 6}}, [](Scope& s, const Outputs& x) { return reshape(s, x[0], {-1, 4}); }, {3, 4});
  expect_shape({{-1, 6}}, [](Scope& s, const Outputs& x) { return reshape(s, x[0], {-1, 4}); }, {-1, 4});
}

TEST(Reshape, ExpandDimsAndSqueezeCountFromEitherEnd) {
  for (const auto& [axis, expected] : {std::pair(0, Shape{1, -1, 3}), std::pair(-1, Shape{-1, 3, 1})})
    expect_shape(
        {{-1, 3}}, [&, axis = axis](Scope& s, const Outputs& x) { return expand_dims(s, x[0], axis); },
        expected);
  expect_shape({{2, 1, 3, 1}}, [](Scope& s, const Outputs& x) { return squeeze(s, x[0]); }, {2, 3});
  expect_shape({{-1, 1, 3, 1}}, [](Scope& s, const Outputs& x) { return squeeze(s, x[0], {-1}); },
               {-1, 1, 3});
}

TEST(Reshape, ExpandDimsAndSqueezeKeepTheElements) {
  const Tensor x = Tensor::of<float>({2, 1}, {1, 2});
  const Tensor expanded = run_op({x}, [](Scope& s, const Outputs& in) { return expand_dims(s, in[0], 1); });
  EXPECT_EQ(expanded.shape(), (Shape{2, 1, 1}));
  EXPECT_THAT(expanded.span<float>(), ElementsAre(1, 2));
  const Tensor squeezed = run_op({x}, [](Scope& s, const Outputs& in) { return squeeze(s, in[0]); });
  EXPECT_EQ(squeezed.shape(), (Shape{2}));
  EXPECT_THAT(squeezed.span<float>(), ElementsAre(1, 2));
}

TEST(Reshape, ExpandDimsAndSqueezeRefuseDimensionsThatDoNotFit) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {2, 3});
  EXPECT_THAT([&] { squeeze(s, x, {0}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Can not squeeze dim[0]")));
  EXPECT_THAT([&] { expand_dims(s, x, 4); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("[2,3]")));
}

// Transposition.

TEST(Transpose, ReversesDimensionsWithoutPerm) {
  const Tensor y = run_op({Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})},
                          [](Scope& s, const Outputs& x) { return transpose(s, x[0]); });
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  EXPECT_THAT(y.span<float>(), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Transpose, MovesElementsByAnyPermutation) {
  const Tensor x = test_numbers({3, 20, 2, 17});
  std::vector<std::int64_t> perm = {0, 1, 2, 3};
  do {
    const Tensor y = run_op({x}, [&](Scope& s, const Outputs& in) { return transpose(s, in[0], perm); });
    std::int64_t strides[4] = {680, 34, 17, 1};
    const auto& dims = y.shape().dims();
    std::int64_t at = 0, wrong = 0;
    for (std::int64_t i = 0; i < dims[0]; ++i)
      for (std::int64_t j = 0; j < dims[1]; ++j)
        for (std::int64_t k = 0; k < dims[2]; ++k)
          for (std::int64_t l = 0; l < dims[3]; ++l)
            wrong += y.data<double>()[at++] != x.data<double>()[i * strides[perm[0]] + j * strides[perm[1]] +
                                                                k * strides[perm[2]] + l * strides[perm[3]]];
    EXPECT_EQ(wrong, 0) << testing::PrintToString(perm);
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(Transpose, PermutesWhatIsKnown) {
  const auto build = [](Scope& s, const Outputs& x) { return transpose(s, x[0], {2, 0, 1}); };
  expect_shape({{-1, 3, 4}}, build, {4, -1, 3});
  expect_shape({Shape::unknown_rank()}, build, {-1, -1, -1});
}

TEST(Transpose, TakesEveryElementSizeAndNoElements) {
  const auto swapped = [](const Tensor& x) {
    return run_op({x}, [](Scope& s, const Outputs& in) { return transpose(s, in[0], {1, 0}); });
  };
  EXPECT_THAT(swapped(Tensor::of<bool>({2, 2}, {true, true, false, false})).span<bool>(),
              ElementsAre(true, false, true, false));
  EXPECT_THAT(swapped(Tensor::of<Half>({1, 2}, {Half(1), Half(2)})).span<Half>(),
              ElementsAre(Half(1), Half(2)));
  EXPECT_EQ(swapped(Tensor(DType::f32, {0, 3})).shape(), (Shape{3, 0}));
}

TEST(Transpose, RefusesWhatIsNoPermutation) {
  const auto by = [](std::vector<std::int64_t> perm) {
    run_op({Tensor(DType::f32, {2, 3})},
           [&](Scope& s, const Outputs& x) { return transpose(s, x[0], perm); });
  };
  EXPECT_THAT(
      [&] {
        by({0, 0});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("[0,0] is not a permutation")));
  EXPECT_THAT(
      [&] {
        by({0, 2, 1});
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2,3]"), HasSubstr("3 entries"))));
}

TEST(Transpose, GradientIsTransposedBack) {
  expect_gradients({test_numbers({2, 3, 4})}, [](Scope& s, const Outputs& x) {
    return transpose(s, square(s, x[0]), {2, 0, 1});
  });
}

TEST(Reshape, RefusesAShapeOfMoreElementsThanThereAreNumbers) {
  Graph graph;
  const Scope s(graph);
  const std::int64_t much = std::int64_t{1} << 40;
  EXPECT_THAT(
      [&] {
        reshape(s, constant(s, 1.0f), {much, much, -1});
      },
      ::testing::ThrowsMessage<InvalidArgumentError>(::testing::HasSubstr("2^63 elements or more")));
}

const Tensor kA = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
const Tensor kB = Tensor::of<float>({2, 1}, {5, 6});

TEST(Concat, JoinsAlongEitherDimension) {
  const Tensor wide = run_op({kA, kB}, [](Scope& s, const Outputs& x) { return concat(s, x, -1); });
  EXPECT_EQ(wide.shape(), (Shape{2, 3}));
  EXPECT_THAT(wide.span<float>(), ElementsAre(1, 2, 5, 3, 4, 6));
  const Tensor tall = run_op({kA, kA}, [](Scope& s, const Outputs& x) { return concat(s, x, 0); });
  EXPECT_THAT(tall.span<float>(), ElementsAre(1, 2, 3, 4, 1, 2, 3, 4));
}

TEST(Concat, TakesEmptyAndSingleTensors) {
  const Tensor none(DType::f32, {2, 0});
  EXPECT_THAT(
      run_op({none, kB, none}, [](Scope& s, const Outputs& x) { return concat(s, x, 1); }).span<float>(),
      ElementsAre(5, 6));
  EXPECT_THAT(run_op({kA}, [](Scope& s, const Outputs& x) { return concat(s, x, 1); }).span<float>(),
              ElementsAre(1, 2, 3, 4));
}

TEST(Concat, KnowsAllButTheUnknownDimension) {
  expect_shape({{-1, 2}, {3, 2}}, [](Scope& s, const Outputs& x) { return concat(s, x, 0); }, {-1, 2});
  expect_shape({{-1, 2}, {3, 2}}, [](Scope& s, const Outputs& x) { return concat(s, x, 1); }, {3, 4});
}

TEST(Concat, NamesShapesThatDoNotFit) {
  EXPECT_THAT(
      [] {
        run_op({kA, kB}, [](Scope& s, const Outputs& x) { return concat(s, x, 0); });
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("input 1 is [2,1]"), HasSubstr("[?,2]"))));
  EXPECT_THAT([] { run_op({kA}, [](Scope& s, const Outputs& x) { return concat(s, x, 2); }); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("axis 2")));
}

TEST(Concat, GradientIsCutApartAgain) {
  for (const bool known_shapes : {true, false})
    for (const int axis : {0, 1, -1})
      expect_gradients({test_numbers({2, 3, 2}), test_numbers({2, 3, 2}, 1)},
                       [=](Scope& s, const Outputs& x) {
                         return concat(s, {x[0], square(s, x[1])}, axis);
                       },
                       {.known_shapes = known_shapes});
}

// Part `i` of what `cut` makes of x.
Tensor part(const Tensor& x, int i, const std::function<Outputs(Scope&, Output)>& cut) {
  return run_op({x}, [&](Scope& s, const Outputs& in) { return cut(s, in[0]).at(i); });
}

TEST(Split, CutsIntoEqualParts) {
  const Tensor x = Tensor::of<float>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto columns = [](Scope& s, Output in) { return split(s, in, 2, -1); };
  EXPECT_THAT(part(x, 0, columns).span<float>(), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(part(x, 1, columns).span<float>(), ElementsAre(3, 4, 7, 8));
  const auto rows = [](Scope& s, Output in) { return split(s, in, 2); };
  EXPECT_THAT(part(x, 1, rows).span<float>(), ElementsAre(5, 6, 7, 8));
}

TEST(Split, CutsIntoPartsOfTheseSizes) {
  const Tensor x = Tensor::of<std::int8_t>({5}, {1, 2, 3, 4, 5});
  const auto cut = [](Scope& s, Output in) { return split_v(s, in, {1, -1, 0, 2}); };
  EXPECT_THAT(part(x, 0, cut).span<std::int8_t>(), ElementsAre(1));
  EXPECT_THAT(part(x, 1, cut).span<std::int8_t>(), ElementsAre(2, 3));
  EXPECT_EQ(part(x, 2, cut).shape(), (Shape{0}));
  EXPECT_THAT(part(x, 3, cut).span<std::int8_t>(), ElementsAre(4, 5));
}

TEST(Split, KnowsTheSizesOfItsParts) {
  expect_shape({{-1, 6}}, [](Scope& s, const Outputs& x) { return split(s, x[0], 3, 1)[2]; }, {-1, 2});
  expect_shape({{-1, 6}}, [](Scope& s, const Outputs& x) { return split(s, x[0], 3, 0)[2]; }, {-1, 6});
  expect_shape({{-1, 6}}, [](Scope& s, const Outputs& x) { return split_v(s, x[0], {2, -1}, 0)[0]; }, {2, 6});
}

TEST(Split, RefusesPartsThatDoNotMakeUpTheDimension) {
  const Tensor x(DType::f32, {5, 2});
  EXPECT_THAT([&] { part(x, 0, [](Scope& s, Output in) { return split(s, in, 2); }); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[5,2]"), HasSubstr("2 equal parts"))));
  EXPECT_THAT([&] { part(x, 0, [](Scope& s, Output in) {
                      return split_v(s, in, {2, 2});
                    }); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("add up to 4"), HasSubstr("5 elements"))));
  EXPECT_THAT([&] { part(x, 0, [](Scope& s, Output in) { return split(s, in, 0); }); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("split into 0 parts")));
  EXPECT_THAT([&] { part(x, 0, [](Scope& s, Output in) { return split(s, in, 2, 2); }); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("axis 2")));
}

TEST(Split, GradientOfAPartThatNobodyReadsIsZero) {
  for (const bool known_shapes : {true, false})
    expect_gradients({test_numbers({2, 6})},
                     [](Scope& s, const Outputs& x) {
                       const Outputs parts = split(s, x[0], 3, 1);
                       return mul(s, parts[0], parts[2]);
                     },
                     {.known_shapes = known_shapes});
}

TEST(Stack, PutsTensorsSideBySide) {
  const Tensor a = Tensor::of<float>({2}, {1, 2}), b = Tensor::of<float>({2}, {3, 4});
  const auto along = [&](int axis) {
    return run_op({a, b}, [=](Scope& s, const Outputs& x) { return stack(s, x, axis); });
  };
  EXPECT_THAT(along(0).span<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(along(-1).shape(), (Shape{2, 2}));
  EXPECT_THAT(along(-1).span<float>(), ElementsAre(1, 3, 2, 4));
}

TEST(Stack, NamesShapesThatDiffer) {
  EXPECT_THAT(
      [] {
        run_op({kA, kB}, [](Scope& s, const Outputs& x) { return stack(s, x); });
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2,2]"), HasSubstr("tensor 1 is [2,1]"))));
}

TEST(Unstack, GivesEachElementOfADimension) {
  const Tensor x = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto columns = [](Scope& s, Output in) { return unstack(s, in, 1); };
  EXPECT_EQ(part(x, 2, columns).shape(), (Shape{2}));
  EXPECT_THAT(part(x, 2, columns).span<float>(), ElementsAre(3, 6));
}

TEST(Unstack, NeedsAKnownDimension) {
  Graph graph;
  Scope s(graph);
  EXPECT_THAT(
      [&] {
        unstack(s, placeholder(s, DType::f32, {-1, 3}));
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[?,3]"), HasSubstr("dimension 0"))));
}

TEST(Unstack, IsUndoneByStack) {
  expect_gradients({test_numbers({2, 3})},
                   [](Scope& s, const Outputs& x) { return stack(s, unstack(s, x[0], 1), 1); });
}

TEST(Slice, CutsBlockOut) {
  const Tensor x = Tensor::of<std::int32_t>({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const auto cut = [&](std::vector<std::int64_t> begin, std::vector<std::int64_t> size) {
    return run_op({x}, [&](Scope& s, const Outputs& in) { return slice(s, in[0], begin, size); });
  };
  EXPECT_THAT(cut({1, 1}, {2, 2}).span<std::int32_t>(), ElementsAre(5, 6, 9, 10));
  EXPECT_THAT(cut({1, 0}, {-1, -1}).span<std::int32_t>(), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(cut({0, 3}, {3, 1}).span<std::int32_t>(), ElementsAre(3, 7, 11));
  EXPECT_EQ(cut({3, 0}, {0, 4}).shape(), (Shape{0, 4}));
}

TEST(Slice, KnowsTheSizesThatWereAskedFor) {
  expect_shape({{-1, 5, -1}},
               [](Scope& s, const Outputs& x) {
                 return slice(s, x[0], {1, 2, 0}, {2, -1, -1});
               },
               {2, 3, -1});
}

TEST(Slice, RefusesBlockOutsideTheTensor) {
  EXPECT_THAT([] { run_op({kA}, [](Scope& s, const Outputs& x) {
                     return slice(s, x[0], {0, 1}, {2, 2});
                   }); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("dimension 1"), HasSubstr("[2,2]"))));
}

TEST(Slice, GradientIsZeroOutsideTheBlock) {
  for (const bool known_shapes : {true, false})
    expect_gradients({test_numbers({3, 2, 4})},
                     [](Scope& s, const Outputs& x) {
                       return slice(s, x[0], {1, 0, 2}, {2, -1, 1});
                     },
                     {.known_shapes = known_shapes});
}

auto shape_as(DType type) {
  return [=](Scope& s, const Outputs& x) { return shape_of(s, x[0], type); };
}
auto size_as(DType type) {
  return [=](Scope& s, const Outputs& x) { return size_of(s, x[0], type); };
}
const auto rank = [](Scope& s, const Outputs& x) { return rank_of(s, x[0]); };

TEST(ShapeOf, ReadsWhatIsFed) {
  for (const bool known_shapes : {true, false}) {
    const Tensor x(DType::f32, {2, 0, 5});
    EXPECT_THAT(run_op({x}, shape_as(DType::i32), known_shapes).span<std::int32_t>(), ElementsAre(2, 0, 5));
    EXPECT_THAT(run_op({x}, shape_as(DType::i64), known_shapes).span<std::int64_t>(), ElementsAre(2, 0, 5));
    EXPECT_EQ(run_op({x}, size_as(DType::i32), known_shapes).value<std::int32_t>(), 0);
    EXPECT_EQ(run_op({x}, rank, known_shapes).value<std::int32_t>(), 3);
  }
}

TEST(ShapeOf, OfAScalarIsEmpty) {
  const Tensor x = Tensor::scalar(true);
  EXPECT_EQ(run_op({x}, shape_as(DType::i32)).shape(), (Shape{0}));
  EXPECT_EQ(run_op({x}, size_as(DType::i64)).value<std::int64_t>(), 1);
  EXPECT_EQ(run_op({x}, rank).value<std::int32_t>(), 0);
}

TEST(ShapeOf, HasOneElementForEachDimension) {
  expect_shape({{-1, 3}}, shape_as(DType::i32), {2});
  expect_shape({Shape::unknown_rank()}, shape_as(DType::i32), {-1});
  expect_shape({Shape::unknown_rank()}, size_as(DType::i32), {});
  expect_shape({Shape::unknown_rank()}, rank, {});
}

TEST(ShapeOf, RefusesOtherTypes) {
  EXPECT_THAT([] { run_op({Tensor::scalar(1.0f)}, shape_as(DType::f32)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("f32 was asked for")));
}

}  // namespace
}  // namespace kolo
