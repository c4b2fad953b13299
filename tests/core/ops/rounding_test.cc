#include <kolo/core/ops/rounding.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>

#include "tests/core/gradient_check.h"
#include "tests/core/ops/unary_values.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Binary = Output (*)(const Scope&, Output, Output);
using Unary = Output (*)(const Scope&, Output);

Tensor run_binary(Binary op, const Tensor& a, const Tensor& b) {
  return run_op({a, b}, [=](Scope& s, const Outputs& x) { return op(s, x[0], x[1]); });
}

class RoundingValues : public testing::TestWithParam<UnaryCase> {};
TEST_P(RoundingValues, AgreeWithTheDefinition) { expect_values(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Rounding, RoundingValues,
    testing::Values(UnaryCase{"floor", floor, [](double x) { return std::floor(x); }, -5, 5},
                    UnaryCase{"ceil", ceil, [](double x) { return std::ceil(x); }, -5, 5},
                    UnaryCase{"round", round, [](double x) { return x - std::remainder(x, 1.0); }, -5, 5}),
    case_name);

TEST(Rounding, HalvesGoToTheEvenNumber) {
  const Tensor x = Tensor::of<float>({6}, {-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f});
  EXPECT_THAT(run_op({x}, [](Scope& s, const Outputs& in) { return round(s, in[0]); }).span<float>(),
              ElementsAre(-2, -2, 0, 0, 2, 2));
}

TEST(Rounding, NanStaysNan) {
  const Tensor nan = Tensor::scalar(std::nan(""));
  for (const Unary op : {floor, ceil, round})
    EXPECT_TRUE(
        std::isnan(run_op({nan}, [=](Scope& s, const Outputs& x) { return op(s, x[0]); }).value<double>()));
}

TEST(Rounding, KeepsTheShape) {
  for (const Unary op : {floor, ceil, round})
    expect_shape({{-1, 3}}, [=](Scope& s, const Outputs& x) { return op(s, x[0]); }, {-1, 3});
}

TEST(Rounding, StopsGradients) {
  for (const Unary op : {floor, ceil, round})
    expect_gradients({test_numbers({3})}, [=](Scope& s, const Outputs& x) { return op(s, x[0]); },
                     {.constant = {0}});
}

template <typename T>
class FloorDivision : public testing::Test {};
using Types = testing::Types<float, double, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(FloorDivision, Types);

TYPED_TEST(FloorDivision, RoundsDownAndTheRestHasTheDivisorsSign) {
  using T = TypeParam;
  const Tensor a = Tensor::of<T>({5}, {7, -7, 7, -7, -6}), b = Tensor::of<T>({5}, {2, 2, -2, -2, 3});
  EXPECT_THAT(run_binary(floordiv, a, b).span<T>(), ElementsAre(3, -4, -4, 3, -2));
  EXPECT_THAT(run_binary(mod, a, b).span<T>(), ElementsAre(1, 1, -1, -1, 0));
}

TEST(FloorDivisions, OfTheSmallestWholeNumberByMinusOneWrapAround) {
  const Tensor a = Tensor::scalar<std::int32_t>(INT32_MIN), b = Tensor::scalar<std::int32_t>(-1);
  EXPECT_EQ(run_binary(floordiv, a, b).value<std::int32_t>(), INT32_MIN);
  EXPECT_EQ(run_binary(mod, a, b).value<std::int32_t>(), 0);
}

TEST(FloorDivisions, RefuseWholeNumberDividedByZero) {
  for (const Binary op : {floordiv, mod})
    EXPECT_THAT([=] { run_binary(op, Tensor::scalar<std::int64_t>(1), Tensor::scalar<std::int64_t>(0)); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("Integer division by zero")));
}

TEST(FloorDivisions, BroadcastShapes) {
  for (const Binary op : {floordiv, mod})
    expect_shape({{-1, 1}, {3}}, [=](Scope& s, const Outputs& x) { return op(s, x[0], x[1]); }, {-1, 3});
}

TEST(FloorDivisions, GradientsFlowThroughTheRestAlone) {
  const Tensor a = Tensor::of<double>({2, 1}, {7.3, -2.6}), b = Tensor::of<double>({2}, {2, -1.5});
  expect_gradients({a, b}, [](Scope& s, const Outputs& x) { return mod(s, x[0], x[1]); });
  expect_gradients({a, b}, [](Scope& s, const Outputs& x) { return floordiv(s, x[0], x[1]); },
                   {.constant = {0, 1}});
}

}  // namespace
}  // namespace kolo
