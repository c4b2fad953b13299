#include <kolo/core/ops/global_norm.h>

#include <gmock/gmock.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/elementwise.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor norm_of(const std::vector<Tensor>& tensors) { return run_op(tensors, global_norm); }

TEST(GlobalNorm, IsTheLengthOfAllTensorsTogether) {
  const Tensor a = Tensor::of<float>({2, 2}, {1, -2, 4, 0}), b = Tensor::scalar(2.0f);
  EXPECT_EQ(norm_of({a, b}).value<float>(), 5);
}

TEST(GlobalNorm, OfNoElementIsZero) { EXPECT_EQ(norm_of({Tensor(DType::f64, {0, 3})}).value<double>(), 0); }

TEST(GlobalNorm, OfNoTensorIsRefused) {
  EXPECT_THAT([] { norm_of({}); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("at least one tensor")));
}

TEST(GlobalNorm, IsInfiniteOrNaNWhereAnElementIs) {
  EXPECT_TRUE(std::isinf(norm_of({Tensor::scalar(-HUGE_VALF)}).value<float>()));
  EXPECT_TRUE(std::isnan(norm_of({Tensor::of<float>({2}, {1, std::nanf("")})}).value<float>()));
}

TEST(GlobalNorm, OfManySmallElementsIsExactAndTheSameOnAnyNumberOfThreads) {
  constexpr std::int64_t kCount = 1000003;
  Tensor x(DType::f32, {kCount});
  for (float& element : x.span<float>()) element = 0.1f;
  const float one = norm_of({x}).value<float>();
  EXPECT_NEAR(one, 0.1f * std::sqrt(static_cast<double>(kCount)), 1e-5);
  const IntraOpThreads threads(3);
  EXPECT_EQ(norm_of({x}).value<float>(), one);
}

TEST(GlobalNorm, IsAScalarWhateverItsInputsAre) {
  expect_shape({{-1, 2}, Shape::unknown_rank()}, global_norm, {});
}

TEST(GlobalNorm, HasAGradient) {
  expect_gradients({test_numbers({3, 2}), test_numbers({4}, 1)}, [](Scope& s, const Outputs& x) {
    return global_norm(s, {square(s, x[0]), x[1]});
  });
}

}  // namespace
}  // namespace kolo
