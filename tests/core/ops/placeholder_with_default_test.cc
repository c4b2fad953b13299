#include <kolo/core/ops/placeholder_with_default.h>

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

auto with_shape(const Shape& shape) {
  return [=](Scope& s, const Outputs& x) { return placeholder_with_default(s, x[0], shape); };
}

TEST(PlaceholderWithDefault, IsTheDefaultWhereItIsNotFed) {
  EXPECT_THAT(run_op({Tensor::of<float>({2}, {3, 4})}, with_shape({-1})).span<float>(), ElementsAre(3, 4));
}

TEST(PlaceholderWithDefault, HasTheShapeThatMayBeFed) {
  expect_shape({{2, 3}}, with_shape({-1, 3}), {-1, 3});
  EXPECT_THAT([] { run_op({Tensor(DType::f32, {2})}, with_shape({3})); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2]"), HasSubstr("[3]"))));
}

TEST(PlaceholderWithDefault, GradientPassesThrough) {
  expect_gradients({test_numbers({3})}, with_shape({3}));
}

}  // namespace
}  // namespace kolo
