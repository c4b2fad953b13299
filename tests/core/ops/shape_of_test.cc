#include <kolo/core/ops/shape_of.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

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
