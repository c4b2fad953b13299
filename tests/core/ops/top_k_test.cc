#include <kolo/core/ops/top_k.h>

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

auto values(std::int64_t k) {
  return [=](Scope& s, const Outputs& x) { return top_k(s, x[0], k).values; };
}
auto indices(std::int64_t k) {
  return [=](Scope& s, const Outputs& x) { return top_k(s, x[0], k).indices; };
}
auto precision(std::int64_t k) {
  return [=](Scope& s, const Outputs& x) { return in_top_k(s, x[0], x[1], k); };
}

TEST(TopK, TakesTheLargestOfEachRow) {
  const Tensor x = Tensor::of<float>({2, 4}, {1, 9, 3, 5, -2, -8, -1, -4});
  EXPECT_THAT(run_op({x}, values(2)).span<float>(), ElementsAre(9, 5, -1, -2));
  EXPECT_THAT(run_op({x}, indices(2)).span<std::int32_t>(), ElementsAre(1, 3, 2, 0));
}

TEST(TopK, PrefersTheFirstOfEqualOnes) {
  const Tensor x = Tensor::of<std::int64_t>({5}, {7, 3, 7, 7, 3});
  EXPECT_THAT(run_op({x}, indices(4)).span<std::int32_t>(), ElementsAre(0, 2, 3, 1));
}

TEST(TopK, NanIsNotHidden) {
  const Tensor x = Tensor::of<double>({3}, {1, std::nan(""), 3});
  EXPECT_THAT(run_op({x}, indices(3)).span<std::int32_t>(), ElementsAre(1, 2, 0));
}

TEST(TopK, SortsAWholeRow) {
  const Tensor x = test_numbers({3, 101});
  const Tensor y = run_op({x}, values(101));
  for (int row = 0; row < 3; ++row) {
    std::vector<double> expected(x.data<double>() + row * 101, x.data<double>() + (row + 1) * 101);
    std::sort(expected.begin(), expected.end(), std::greater<>());
    for (int i = 0; i < 101; ++i) EXPECT_EQ(y.data<double>()[row * 101 + i], expected[i]);
  }
}

TEST(TopK, TakesNone) {
  EXPECT_EQ(run_op({Tensor(DType::f32, {2, 3})}, values(0)).shape(), (Shape{2, 0}));
  EXPECT_EQ(run_op({Tensor(DType::f32, {0, 3})}, values(2)).shape(), (Shape{0, 2}));
}

TEST(TopK, ReplacesTheLastDimension) {
  expect_shape({{-1, 5}}, values(3), {-1, 3});
  expect_shape({{-1, -1}}, indices(3), {-1, 3});
}

TEST(TopK, RefusesMoreThanThereAre) {
  EXPECT_THAT(
      [] {
        run_op({Tensor(DType::f32, {2, 3})}, values(4));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("input must have at least k columns. Had 3, needed 4")));
  EXPECT_THAT([] { run_op({Tensor::scalar(1.0f)}, values(1)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("input must be >= 1-D, got shape []")));
}

TEST(TopK, GradientGoesToWhereTheValuesStood) {
  for (const bool known_shapes : {true, false})
    expect_gradients({test_numbers({2, 5})}, values(2), {.known_shapes = known_shapes});
}

TEST(InTopK, CountsTheLargerPredictions) {
  const Tensor predictions = Tensor::of<float>({3, 3}, {1, 2, 3, 1, 2, 3, 1, 2, 3});
  const Tensor targets = Tensor::of<std::int32_t>({3}, {0, 1, 2});
  EXPECT_THAT(run_op({predictions, targets}, precision(1)).span<bool>(), ElementsAre(false, false, true));
  EXPECT_THAT(run_op({predictions, targets}, precision(2)).span<bool>(), ElementsAre(false, true, true));
}

TEST(InTopK, EqualPredictionsAllCount) {
  const Tensor predictions = Tensor::of<double>({1, 3}, {5, 5, 5});
  EXPECT_THAT(run_op({predictions, Tensor::of<std::int64_t>({1}, {2})}, precision(1)).span<bool>(),
              ElementsAre(true));
}

TEST(InTopK, IsFalseWithoutAnAnswer) {
  const Tensor predictions = Tensor::of<float>({3, 2}, {1, 2, 1, 2, std::nanf(""), 2});
  EXPECT_THAT(run_op({predictions, Tensor::of<std::int32_t>({3}, {2, -1, 1})}, precision(2)).span<bool>(),
              Each(false));
}

TEST(InTopK, HasOneAnswerForEachRow) {
  expect_shape({{-1, 10}, {{4}, DType::i32}}, precision(1), {4});
  EXPECT_THAT(
      [] {
        run_op({Tensor(DType::f32, {3, 2}), Tensor(DType::i32, {2})}, precision(1));
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(
          HasSubstr("First dimension of predictions 3 must match length of targets 2"), HasSubstr("[3,2]"))));
}

}  // namespace
}  // namespace kolo
