#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/concat.h>
#include <kolo/core/ops/elementwise.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

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

}  // namespace
}  // namespace kolo
