#include <kolo/core/ops/reductions.h>

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/math.h>

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

using Reduction = Output (*)(const Scope&, Output, ReduceOptions);

Tensor reduce(Reduction op, const Tensor& x, const ReduceOptions& options = {}) {
  return run_op({x}, [&](Scope& s, const Outputs& in) { return op(s, in[0], options); });
}

const Tensor kMatrix = Tensor::of<float>({2, 3}, {1, 5, 3, 4, 2, 6});

TEST(Reductions, FoldRowsColumnsOrAll) {
  EXPECT_THAT(reduce(reduce_sum, kMatrix, {.axes = {1}}).span<float>(), ElementsAre(9, 12));
  EXPECT_THAT(reduce(reduce_sum, kMatrix, {.axes = {0}}).span<float>(), ElementsAre(5, 7, 9));
  EXPECT_THAT(reduce(reduce_mean, kMatrix, {.axes = {-1}}).span<float>(), ElementsAre(3, 4));
  EXPECT_THAT(reduce(reduce_max, kMatrix, {.axes = {0}}).span<float>(), ElementsAre(4, 5, 6));
  EXPECT_THAT(reduce(reduce_min, kMatrix, {.axes = {1}}).span<float>(), ElementsAre(1, 2));
  const Tensor product = reduce(reduce_prod, kMatrix);
  EXPECT_EQ(product.shape(), Shape());
  EXPECT_EQ(product.value<float>(), 720);
}

TEST(Reductions, KeepDimensionsWhenAsked) {
  EXPECT_EQ(reduce(reduce_sum, kMatrix, {.axes = {1}, .keep_dims = true}).shape(), (Shape{2, 1}));
  EXPECT_EQ(reduce(reduce_sum, kMatrix, {.axes = {}, .keep_dims = true}).shape(), (Shape{1, 1}));
}

TEST(Reductions, KnowTheDimensionsThatStay) {
  for (const Reduction op : {reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod}) {
    const auto with = [=](const ReduceOptions& options) {
      return [=](Scope& s, const Outputs& x) { return op(s, x[0], options); };
    };
    expect_shape({{-1, 3, -1}}, with({.axes = {1}}), {-1, -1});
    expect_shape({{-1, 3, 4}}, with({.axes = {0, -1}, .keep_dims = true}), {1, 3, 1});
    expect_shape({Shape::unknown_rank()}, with({}), {});
    expect_shape({Shape::unknown_rank()}, with({.axes = {0}}), Shape::unknown_rank());
  }
  for (const auto position : {argmax, argmin})
    expect_shape({{-1, 3, 4}}, [=](Scope& s, const Outputs& x) { return position(s, x[0], -2); }, {-1, 4});
  for (const Reduction op : {reduce_any, reduce_all})
    expect_shape({{{-1, 3}, DType::boolean}},
                 [=](Scope& s, const Outputs& x) { return op(s, x[0], {.axes = {1}}); }, {-1});
}

// Every choice of axes of a tensor of four dimensions against plain loops.
TEST(Reductions, SumOverAnyAxes) {
  const Tensor x = test_numbers({3, 2, 5, 4});
  for (int mask = 1; mask < 16; ++mask) {
    ReduceOptions options;
    Shape kept{1, 1, 1, 1};
    for (int axis = 0; axis < 4; ++axis)
      if ((mask >> axis & 1) != 0) options.axes.push_back(axis);
      else kept = kept.with_dim(axis, x.shape().dim(axis));
    Tensor expected = Tensor::zeros(DType::f64, kept);
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      std::int64_t rest = i, at = 0, stride = 1;
      for (int axis = 3; axis >= 0; --axis) {
        at += rest % x.shape().dim(axis) % kept.dim(axis) * stride;
        stride *= kept.dim(axis);
        rest /= x.shape().dim(axis);
      }
      expected.data<double>()[at] += x.data<double>()[i];
    }
    const Tensor sum = reduce(reduce_sum, x, options);
    ASSERT_EQ(sum.elements(), expected.elements());
    for (std::int64_t i = 0; i < sum.elements(); ++i)
      EXPECT_NEAR(sum.data<double>()[i], expected.data<double>()[i], 1e-13) << "axes mask " << mask;
  }
}

TEST(Reductions, OfNoElementAreTheirNeutralElements) {
  const Tensor none(DType::f32, {2, 0});
  EXPECT_THAT(reduce(reduce_sum, none, {.axes = {1}}).span<float>(), ElementsAre(0, 0));
  EXPECT_THAT(reduce(reduce_prod, none, {.axes = {1}}).span<float>(), ElementsAre(1, 1));
  EXPECT_THAT(reduce(reduce_max, none, {.axes = {1}}).span<float>(),
              Each(-std::numeric_limits<float>::infinity()));
  EXPECT_TRUE(std::isnan(reduce(reduce_mean, none).value<float>()));
  EXPECT_EQ(reduce(reduce_sum, none, {.axes = {0}}).shape(), (Shape{0}));
}

TEST(Reductions, SumOfFloatsDoesNotDriftWithItsLength) {
  Tensor x(DType::f32, {3'000'000});
  for (float& value : x.span<float>()) value = 0.1f;
  const double exact = 3'000'000 * static_cast<double>(0.1f);
  EXPECT_EQ(reduce(reduce_sum, x).value<float>(), static_cast<float>(exact));
  EXPECT_EQ(reduce(reduce_mean, x).value<float>(), 0.1f);
}

TEST(Reductions, SumOfInt32IsKeptWideInside) {
  const Tensor x = Tensor::of<std::int32_t>({3}, {INT32_MAX, 1, -1});
  EXPECT_EQ(reduce(reduce_sum, x).value<std::int32_t>(), INT32_MAX);
}

TEST(Reductions, DoNotDependOnThreads) {
  const Tensor x = test_numbers({700, 301});
  for (const ReduceOptions& options :
       {ReduceOptions{.axes = {0}}, ReduceOptions{.axes = {1}}, ReduceOptions{}}) {
    const Tensor one = [&] {
      const IntraOpThreads threads(1);
      return reduce(reduce_sum, x, options);
    }();
    const Tensor three = [&] {
      const IntraOpThreads threads(3);
      return reduce(reduce_sum, x, options);
    }();
    EXPECT_TRUE(
        std::equal(one.span<double>().begin(), one.span<double>().end(), three.span<double>().begin()));
  }
}

TEST(Reductions, NanIsNotHidden) {
  const Tensor x = Tensor::of<float>({3}, {1, std::nanf(""), 3});
  EXPECT_TRUE(std::isnan(reduce(reduce_max, x).value<float>()));
  EXPECT_TRUE(std::isnan(reduce(reduce_min, x).value<float>()));
}

TEST(Reductions, ArgmaxTakesTheFirstOfSeveral) {
  const Tensor x = Tensor::of<float>({2, 3}, {1, 7, 7, 9, 2, 9});
  const auto along = [&](int axis) {
    return run_op({x}, [=](Scope& s, const Outputs& in) { return argmax(s, in[0], axis); });
  };
  EXPECT_THAT(along(-1).span<std::int64_t>(), ElementsAre(1, 0));
  EXPECT_THAT(along(0).span<std::int64_t>(), ElementsAre(1, 0, 1));
}

TEST(Reductions, ArgminTakesTheFirstOfSeveral) {
  const Tensor x = Tensor::of<std::int32_t>({2, 3}, {7, 1, 1, 2, 9, 2});
  const Tensor rows = run_op({x}, [](Scope& s, const Outputs& in) { return argmin(s, in[0]); });
  EXPECT_THAT(rows.span<std::int64_t>(), ElementsAre(1, 0));
}

TEST(Reductions, AnyAndAllJoinTruthValues) {
  const Tensor x = Tensor::of<bool>({3, 2}, {true, true, false, true, false, false});
  EXPECT_THAT(reduce(reduce_any, x, {.axes = {1}}).span<bool>(), ElementsAre(true, true, false));
  EXPECT_THAT(reduce(reduce_all, x, {.axes = {1}}).span<bool>(), ElementsAre(true, false, false));
  EXPECT_THAT(reduce(reduce_all, x, {.axes = {0}}).span<bool>(), ElementsAre(false, false));
  EXPECT_TRUE(reduce(reduce_any, x).value<bool>());
  EXPECT_FALSE(reduce(reduce_any, Tensor(DType::boolean, {0})).value<bool>());
  EXPECT_TRUE(reduce(reduce_all, Tensor(DType::boolean, {0})).value<bool>());
}

TEST(Reductions, LogSumExpIsItsDefinitionAndDoesNotOverflow) {
  const Tensor x = test_numbers({2, 3});
  const Tensor y = reduce(reduce_logsumexp, x, {.axes = {1}, .keep_dims = true});
  EXPECT_EQ(y.shape(), (Shape{2, 1}));
  for (int row = 0; row < 2; ++row) {
    double sum = 0;
    for (int i = 0; i < 3; ++i) sum += std::exp(x.data<double>()[row * 3 + i]);
    EXPECT_NEAR(y.data<double>()[row], std::log(sum), 1e-14);
  }
  const Tensor large = Tensor::of<float>({2}, {1000, 1000});
  EXPECT_NEAR(reduce(reduce_logsumexp, large).value<float>(), 1000 + std::log(2.0), 1e-3);
}

TEST(Reductions, LogSumExpKeepsInfinities) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(reduce(reduce_logsumexp, Tensor::of<double>({2}, {-kInfinity, -kInfinity})).value<double>(),
            -kInfinity);
  EXPECT_EQ(reduce(reduce_logsumexp, Tensor::of<double>({2}, {kInfinity, 1})).value<double>(), kInfinity);
}

TEST(Reductions, RefuseAxesThatDoNotFit) {
  EXPECT_THAT([] { reduce(reduce_sum, kMatrix, {.axes = {2}}); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("axis 2"), HasSubstr("[2,3]"))));
  EXPECT_THAT(
      [] {
        reduce(reduce_sum, kMatrix, {.axes = {1, -1}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("given twice")));
  EXPECT_THAT(
      [] {
        run_op({Tensor(DType::f32, {2, 0})}, [](Scope& s, const Outputs& x) { return argmax(s, x[0], 1); });
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("without elements")));
}

TEST(Reductions, SumLikeFoldsWhatBroadcastingRepeated) {
  const auto like = [](const Shape& shape) {
    return run_op(
        {kMatrix, Tensor::zeros(DType::f32, shape)},
        [](Scope& s, const Outputs& in) { return sum_like(s, in[0], in[1]); }, false);
  };
  EXPECT_THAT(like({3}).span<float>(), ElementsAre(5, 7, 9));
  EXPECT_THAT(like({2, 1}).span<float>(), ElementsAre(9, 12));
  EXPECT_THAT(like({}).span<float>(), ElementsAre(21));
  EXPECT_THAT(like({2, 3}).span<float>(), ElementsAre(1, 5, 3, 4, 2, 6));
}

TEST(ReductionGradients, AreCentralDifferences) {
  for (const Reduction op : {reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod, reduce_logsumexp})
    for (const ReduceOptions& options :
         {ReduceOptions{}, ReduceOptions{.axes = {1}}, ReduceOptions{.axes = {0, -1}, .keep_dims = true}})
      for (const bool known_shapes : {true, false})
        expect_gradients({test_numbers({2, 3, 4})},
                         [&](Scope& s, const Outputs& x) { return op(s, x[0], options); },
                         {.known_shapes = known_shapes});
}

TEST(ReductionGradients, OfMaximumIsSharedByAllThatAreLargest) {
  const Tensor gradient = run_op({Tensor::of<float>({4}, {2, 5, 5, 1})}, [](Scope& s, const Outputs& x) {
    return gradients(s, {reduce_max(s, x[0])}, {x[0]})[0];
  });
  EXPECT_THAT(gradient.span<float>(), ElementsAre(0, 0.5f, 0.5f, 0));
}

TEST(ReductionGradients, OfProductsOfZerosAreCentralDifferences) {
  expect_gradients({Tensor::of<double>({3, 3}, {2, 0, 3, 0, 4, 0, 5, 6, 7})},
                   [](Scope& s, const Outputs& x) { return reduce_prod(s, x[0], {.axes = {1}}); });
}

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
