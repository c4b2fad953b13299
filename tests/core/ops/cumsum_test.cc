#include <kolo/core/ops/cumsum.h>

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

auto summed(int axis, CumsumOptions options = {}) {
  return [=](Scope& s, const Outputs& x) { return cumsum(s, x[0], axis, options); };
}

TEST(Cumsum, AddsWhatCameBefore) {
  const Tensor x = Tensor::of<std::int32_t>({4}, {1, 2, 3, 4});
  EXPECT_THAT(run_op({x}, summed(0)).span<std::int32_t>(), ElementsAre(1, 3, 6, 10));
  EXPECT_THAT(run_op({x}, summed(0, {.exclusive = true})).span<std::int32_t>(), ElementsAre(0, 1, 3, 6));
  EXPECT_THAT(run_op({x}, summed(-1, {.reverse = true})).span<std::int32_t>(), ElementsAre(10, 9, 7, 4));
  EXPECT_THAT(run_op({x}, summed(0, {.exclusive = true, .reverse = true})).span<std::int32_t>(),
              ElementsAre(9, 7, 4, 0));
}

TEST(Cumsum, RunsAlongAnyAxis) {
  const Tensor x = test_numbers({3, 4, 70});
  const std::int64_t strides[] = {280, 70, 1};
  for (int axis = 0; axis < 3; ++axis) {
    const Tensor y = run_op({x}, summed(axis));
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const std::int64_t at = i / strides[axis] % x.shape().dim(axis);
      double sum = 0;
      for (std::int64_t k = 0; k <= at; ++k) sum += x.data<double>()[i - (at - k) * strides[axis]];
      ASSERT_NEAR(y.data<double>()[i], sum, 1e-13) << "element " << i << ", axis " << axis;
    }
  }
}

TEST(Cumsum, OfFloatsDoesNotDriftWithItsLength) {
  Tensor x(DType::f32, {1'000'000});
  for (float& value : x.span<float>()) value = 0.1f;
  const Tensor y = run_op({x}, summed(0));
  EXPECT_EQ(y.data<float>()[999'999], static_cast<float>(1'000'000 * static_cast<double>(0.1f)));
}

TEST(Cumsum, TakesEmptyTensors) {
  EXPECT_EQ(run_op({Tensor(DType::f32, {2, 0})}, summed(1)).shape(), (Shape{2, 0}));
}

TEST(Cumsum, KeepsTheShapeAndRefusesOtherAxes) {
  expect_shape({{-1, 3}}, summed(1), {-1, 3});
  EXPECT_THAT([] { run_op({Tensor(DType::f32, {2})}, summed(1)); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("axis 1"), HasSubstr("[2]"))));
}

TEST(Cumsum, GradientRunsTheOtherWay) {
  for (const bool exclusive : {true, false})
    for (const bool reverse : {true, false})
      expect_gradients({test_numbers({3, 4})}, summed(1, {.exclusive = exclusive, .reverse = reverse}));
}

}  // namespace
}  // namespace kolo
