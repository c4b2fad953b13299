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
