#include <kolo/core/ops/one_hot.h>

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

auto encoded(std::int64_t depth, OneHotOptions options = {}) {
  return [=](Scope& s, const Outputs& x) { return one_hot(s, x[0], depth, options); };
}

TEST(OneHot, MarksTheClass) {
  const Tensor y = run_op({Tensor::of<std::int32_t>({2}, {2, 0})}, encoded(3));
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_THAT(y.span<float>(), ElementsAre(0, 0, 1, 1, 0, 0));
}

TEST(OneHot, PutsTheClassesAlongAnyAxis) {
  const Tensor x = Tensor::of<std::int64_t>({2, 2}, {0, 1, 1, 0});
  const Tensor first = run_op({x}, encoded(2, {.axis = 0}));
  EXPECT_THAT(first.span<float>(), ElementsAre(1, 0, 0, 1, 0, 1, 1, 0));
  const Tensor middle = run_op({x}, encoded(3, {.axis = 1}));
  EXPECT_EQ(middle.shape(), (Shape{2, 3, 2}));
  EXPECT_THAT(middle.span<float>(), ElementsAre(1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0));
}

TEST(OneHot, LeavesOutClassesThatThereAreNot) {
  EXPECT_THAT(run_op({Tensor::of<std::int32_t>({2}, {-1, 2})}, encoded(2)).span<float>(), Each(0));
}

TEST(OneHot, TakesValuesAndTypes) {
  const Tensor x = Tensor::of<std::uint8_t>({1}, {1});
  EXPECT_THAT(run_op({x}, encoded(2, {.on = 5, .off = -1, .dtype = DType::i64})).span<std::int64_t>(),
              ElementsAre(-1, 5));
  EXPECT_THAT(run_op({x}, encoded(2, {.dtype = DType::boolean})).span<bool>(), ElementsAre(false, true));
}

TEST(OneHot, TakesScalarsAndEmptyTensors) {
  EXPECT_THAT(run_op({Tensor::scalar<std::int32_t>(1)}, encoded(3)).span<float>(), ElementsAre(0, 1, 0));
  EXPECT_EQ(run_op({Tensor(DType::i32, {0})}, encoded(3)).shape(), (Shape{0, 3}));
  EXPECT_EQ(run_op({Tensor::scalar<std::int32_t>(1)}, encoded(0)).shape(), (Shape{0}));
}

TEST(OneHot, KnowsItsDepth) {
  expect_shape({{{-1, 4}, DType::i32}}, encoded(3, {.axis = 1}), {-1, 3, 4});
  expect_shape({{Shape::unknown_rank(), DType::i32}}, encoded(3), Shape::unknown_rank());
}

TEST(OneHot, RefusesAxisOutsideTheResult) {
  EXPECT_THAT([] { run_op({Tensor(DType::i32, {2})}, encoded(3, {.axis = 2})); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("axis 2"), HasSubstr("[2]"))));
}

}  // namespace
}  // namespace kolo
