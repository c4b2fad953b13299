#include <kolo/core/ops/all_finite.h>

#include <gmock/gmock.h>

#include <cmath>

#include <kolo/core/base/error.h>

#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

bool finite(const std::vector<Tensor>& tensors) { return run_op(tensors, all_finite).value<bool>(); }

TEST(AllFinite, IsTrueOfNumbersOfEveryFloatingType) {
  EXPECT_TRUE(
      finite({Tensor::of<float>({3}, {0, -3.4e38f, 1e-45f}), Tensor::of<double>({2}, {1.7e308, -0.0}),
              Tensor::of<Half>({1}, {Half(-65504.0f)}), Tensor::of<BFloat16>({1}, {BFloat16(1.0f)})}));
}

TEST(AllFinite, IsFalseWhereOneElementOfOneTensorIsNotFinite) {
  for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    Tensor large = Tensor::zeros(DType::f32, {100003});
    large.data<float>()[100002] = bad;
    EXPECT_FALSE(finite({Tensor::scalar(1.0f), large})) << bad;
    EXPECT_FALSE(finite({Tensor::scalar(static_cast<double>(bad))})) << bad;
    EXPECT_FALSE(finite({Tensor::of<Half>({1}, {Half(bad)})})) << bad;
    EXPECT_FALSE(finite({Tensor::of<BFloat16>({1}, {BFloat16(bad)})})) << bad;
  }
}

TEST(AllFinite, IsTrueOfNoElement) { EXPECT_TRUE(finite({Tensor(DType::f32, {0, 3})})); }

TEST(AllFinite, OfNoTensorIsRefused) { EXPECT_THROW(finite({}), InvalidArgumentError); }

TEST(AllFinite, IsAScalarWhateverItsInputsAre) {
  expect_shape({{-1, 2}, Shape::unknown_rank()}, all_finite, {});
}

}  // namespace
}  // namespace kolo
