#include <kolo/core/ops/math.h>

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/basic.h>

#include "tests/core/gradient_check.h"
#include "tests/core/ops/unary_values.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Binary = Output (*)(const Scope&, Output, Output);
using Unary = Output (*)(const Scope&, Output);

Tensor run_binary(Binary op, const Tensor& a, const Tensor& b) {
  return run_op({a, b}, [=](Scope& s, const Outputs& in) { return op(s, in[0], in[1]); });
}

Tensor run_unary(Unary op, const Tensor& x) {
  return run_op({x}, [=](Scope& s, const Outputs& in) { return op(s, in[0]); });
}

TEST(Elementwise, BroadcastsColumnAgainstRow) {
  const Tensor sum = run_binary(add, Tensor::of<float>({2, 1}, {10, 20}), Tensor::of<float>({3}, {1, 2, 3}));
  EXPECT_EQ(sum.shape(), (Shape{2, 3}));
  EXPECT_THAT(sum.span<float>(), ElementsAre(11, 12, 13, 21, 22, 23));
}

TEST(Elementwise, BroadcastsScalarOnEitherSide) {
  const Tensor x = Tensor::of<double>({3}, {1, 2, 4});
  EXPECT_THAT(run_binary(sub, x, Tensor::scalar(1.0)).span<double>(), ElementsAre(0, 1, 3));
  EXPECT_THAT(run_binary(div, Tensor::scalar(8.0), x).span<double>(), ElementsAre(8, 4, 2));
}

TEST(Elementwise, BroadcastsInMiddleDimension) {
  const Tensor a = test_numbers({2, 1, 3}), b = test_numbers({4, 1}, 3);
  const Tensor product = run_binary(mul, a, b);
  ASSERT_EQ(product.shape(), (Shape{2, 4, 3}));
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < 3; ++k)
        EXPECT_EQ(product.data<double>()[(i * 4 + j) * 3 + k],
                  a.data<double>()[i * 3 + k] * b.data<double>()[j]);
}

TEST(Elementwise, TakesEmptyTensors) {
  const Tensor sum = run_binary(add, Tensor(DType::f32, {0, 3}), Tensor::of<float>({3}, {1, 2, 3}));
  EXPECT_EQ(sum.shape(), (Shape{0, 3}));
}

TEST(Elementwise, TakesScalars) {
  EXPECT_EQ(run_binary(maximum, Tensor::scalar(2.0f), Tensor::scalar(3.0f)).value<float>(), 3);
}

TEST(Elementwise, DividesWholeNumbersTowardsZero) {
  const Tensor quotients = run_binary(div, Tensor::of<std::int32_t>({4}, {7, -7, 7, INT32_MIN}),
                                      Tensor::of<std::int32_t>({4}, {2, 2, -2, -1}));
  EXPECT_THAT(quotients.span<std::int32_t>(), ElementsAre(3, -3, -3, INT32_MIN));
}

TEST(Elementwise, RefusesWholeNumberDividedByZero) {
  EXPECT_THAT([] { run_binary(div, Tensor::scalar<std::int64_t>(1), Tensor::scalar<std::int64_t>(0)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Integer division by zero")));
}

TEST(Elementwise, NamesBothShapesThatDoNotFit) {
  EXPECT_THAT(
      [] {
        run_binary(add, Tensor(DType::f32, {2, 3}), Tensor(DType::f32, {4}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Incompatible shapes: [2,3] vs. [4]")));
}

TEST(Elementwise, RefusesOperandsOfTwoTypes) {
  EXPECT_THAT([] { run_binary(add, Tensor::scalar(1.0f), Tensor::scalar(1.0)); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("f32"), HasSubstr("f64"))));
}

TEST(Elementwise, NanIsNotHiddenByMaximumMinimumOrRelu) {
  const Tensor nan = Tensor::scalar(std::nanf("")), one = Tensor::scalar(1.0f);
  EXPECT_TRUE(std::isnan(run_binary(maximum, nan, one).value<float>()));
  EXPECT_TRUE(std::isnan(run_binary(minimum, one, nan).value<float>()));
  EXPECT_TRUE(std::isnan(run_unary(relu, nan).value<float>()));
}

class UnaryValues : public testing::TestWithParam<UnaryCase> {};
TEST_P(UnaryValues, AgreeWithTheDefinition) { expect_values(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Elementwise, UnaryValues,
    testing::Values(UnaryCase{"neg", neg, [](double x) { return -x; }, -2, 2},
                    UnaryCase{"abs", abs, [](double x) { return std::fabs(x); }, -2, 2},
                    UnaryCase{"sign", sign, [](double x) { return x > 0   ? 1.0
                                                                  : x < 0 ? -1.0
                                                                          : 0.0; }, -2, 2},
                    UnaryCase{"square", square, [](double x) { return x * x; }, -2, 2},
                    UnaryCase{"sqrt", sqrt, [](double x) { return std::sqrt(x); }, 0, 100},
                    UnaryCase{"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.01, 100},
                    UnaryCase{"exp", exp, [](double x) { return std::exp(x); }, -87, 88.7228},
                    UnaryCase{"log", log, [](double x) { return std::log(x); }, 0.001, 100},
                    UnaryCase{"tanh", tanh, [](double x) { return std::tanh(x); }, -20, 20},
                    UnaryCase{"tanh_near_zero", tanh, [](double x) { return std::tanh(x); }, -0.01, 0.01},
                    UnaryCase{"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -60, 60},
                    UnaryCase{"relu", relu, [](double x) { return std::fmax(x, 0); }, -2, 2}),
    case_name);

TEST(Elementwise, ExponentialsKeepInfinityAndNan) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::of<float>({5}, {kInfinity, -kInfinity, 200, -200, std::nanf("")});
  const Tensor e = run_unary(exp, x), t = run_unary(tanh, x), g = run_unary(sigmoid, x);
  EXPECT_THAT(e.span<float>().first(4), ElementsAre(kInfinity, 0, kInfinity, 0));
  EXPECT_THAT(t.span<float>().first(4), ElementsAre(1, -1, 1, -1));
  EXPECT_THAT(g.span<float>().first(4), ElementsAre(1, 0, 1, 0));
  for (const Tensor& y : {e, t, g}) EXPECT_TRUE(std::isnan(y.data<float>()[4]));
}

TEST(Elementwise, AddsManyTensors) {
  std::vector<Tensor> xs;
  for (std::int32_t i = 1; i <= 5; ++i) xs.push_back(Tensor::of<std::int32_t>({2}, {i, 10 * i}));
  const auto sum = [](Scope& s, const Outputs& in) { return add_n(s, in); };
  EXPECT_THAT(run_op(xs, sum).span<std::int32_t>(), ElementsAre(15, 150));
  EXPECT_THAT(run_op({xs[2]}, sum).span<std::int32_t>(), ElementsAre(3, 30));
}

TEST(Elementwise, ResultsDoNotDependOnThreads) {
  const Tensor x = test_numbers({300, 401});
  const int before = intra_op_threads();
  set_intra_op_threads(1);
  const Tensor one = run_unary(tanh, x);
  set_intra_op_threads(3);
  const Tensor three = run_unary(tanh, x);
  set_intra_op_threads(before);
  EXPECT_TRUE(std::equal(one.span<double>().begin(), one.span<double>().end(), three.span<double>().begin()));
}

// Shapes.

TEST(ElementwiseShapes, OfBinaryOpsAreBroadcast) {
  for (const Binary op : {add, sub, mul, div, maximum, minimum, pow}) {
    const auto build = [=](Scope& s, const Outputs& x) { return op(s, x[0], x[1]); };
    expect_shape({{-1, 1, 3}, {2, 1}}, build, {-1, 2, 3});
    expect_shape({{2}, Shape::unknown_rank()}, build, Shape::unknown_rank());
  }
}

TEST(ElementwiseShapes, OfUnaryOpsAreTheirInputs) {
  for (const Unary op : {neg, abs, sign, square, relu, sqrt, rsqrt, exp, log, tanh, sigmoid})
    expect_shape({{-1, 3}}, [=](Scope& s, const Outputs& x) { return op(s, x[0]); }, {-1, 3});
}

TEST(ElementwiseShapes, OfSumsAreWhatAnyTensorKnows) {
  expect_shape({{-1, 3}, {2, -1}}, [](Scope& s, const Outputs& x) { return add_n(s, x); }, {2, 3});
}

// Gradients.

TEST(ElementwiseGradients, OfBinaryOpsAreCentralDifferences) {
  for (const Binary op : {add, sub, mul, div, maximum, minimum})
    expect_gradients({test_numbers({2, 3}), test_numbers({2, 3}, 1)},
                     [=](Scope& s, const Outputs& x) { return op(s, x[0], x[1]); });
}

TEST(ElementwiseGradients, OfBroadcastOperandsAreSummed) {
  for (const Binary op : {add, sub, mul, div, maximum})
    expect_gradients({test_numbers({2, 1}), test_numbers({3}, 1)},
                     [=](Scope& s, const Outputs& x) { return op(s, x[0], x[1]); });
  expect_gradients({test_numbers({2, 3, 4}), test_numbers({})},
                   [](Scope& s, const Outputs& x) { return mul(s, x[0], x[1]); });
}

TEST(ElementwiseGradients, OfShapesThatAreUnknownWhenTheGraphIsBuilt) {
  for (const Binary op : {add, mul})
    expect_gradients({test_numbers({2, 1}), test_numbers({2, 3}, 1)},
                     [=](Scope& s, const Outputs& x) { return op(s, x[0], x[1]); }, {.known_shapes = false});
}

TEST(ElementwiseGradients, NoSumWhereTheBatchAloneIsUnknown) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1, 4}), b = placeholder(s, DType::f32, {4});
  const Outputs dx = gradients(s, {add(s, x, b)}, {x, b});
  EXPECT_EQ(dx[0].node->op(), "OnesLike");
  EXPECT_EQ(dx[1].node->op(), "SumLike");
}

TEST(ElementwiseGradients, OfPowAreCentralDifferences) {
  expect_gradients({Tensor::of<double>({2}, {0.5, 2}), Tensor::of<double>({2}, {3, -1.5})},
                   [](Scope& s, const Outputs& x) { return pow(s, x[0], x[1]); });
}

TEST(ElementwiseGradients, OfUnaryOpsAreCentralDifferences) {
  for (const Unary op : {neg, abs, square, exp, tanh, sigmoid, relu})
    expect_gradients({test_numbers({7})}, [=](Scope& s, const Outputs& x) { return op(s, x[0]); });
}

TEST(ElementwiseGradients, OfOpsOnPositiveNumbersAreCentralDifferences) {
  for (const Unary op : {sqrt, rsqrt, log})
    expect_gradients({Tensor::of<double>({3}, {0.5, 1, 4})},
                     [=](Scope& s, const Outputs& x) { return op(s, x[0]); });
}

TEST(ElementwiseGradients, OfTheGradientOfReluAreCentralDifferences) {
  expect_gradients({test_numbers({5})},
                   [](Scope& s, const Outputs& x) { return gradients(s, {square(s, relu(s, x[0]))}, x)[0]; });
}

TEST(ElementwiseGradients, SignStopsThem) {
  expect_gradients({test_numbers({3})}, [=](Scope& s, const Outputs& x) { return sign(s, x[0]); },
                   {.constant = {0}});
}

TEST(ElementwiseGradients, OfSumOfTensorUsedTwiceAreAdded) {
  expect_gradients({test_numbers({3})}, [](Scope& s, const Outputs& x) {
    return add_n(s, {x[0], x[0], square(s, x[0])});
  });
}

using Unary = Output (*)(const Scope&, Output);

const Unary kFunctions[] = {reciprocal, log1p, expm1, sin, cos, erf};

class MathValues : public testing::TestWithParam<UnaryCase> {};
TEST_P(MathValues, AgreeWithTheDefinition) { expect_values(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Math, MathValues,
    testing::Values(UnaryCase{"reciprocal", reciprocal, [](double x) { return 1 / x; }, 0.01, 100},
                    UnaryCase{"log1p", log1p, [](double x) { return std::log1p(x); }, -0.99, 100},
                    UnaryCase{"log1p_near_zero", log1p, [](double x) { return std::log1p(x); }, -1e-6, 1e-6},
                    UnaryCase{"expm1", expm1, [](double x) { return std::expm1(x); }, -20, 20},
                    UnaryCase{"expm1_near_zero", expm1, [](double x) { return std::expm1(x); }, -1e-6, 1e-6},
                    UnaryCase{"sin", sin, [](double x) { return std::sin(x); }, -1000, 1000},
                    UnaryCase{"cos", cos, [](double x) { return std::cos(x); }, -1000, 1000},
                    UnaryCase{"erf", erf, [](double x) { return std::erf(x); }, -4, 4}),
    case_name);

// Abramowitz and Stegun, table 7.1.
TEST(Math, ErfHasItsTabulatedValues) {
  const Tensor y = run_op({Tensor::of<double>({4}, {0, 0.5, 1, 2})},
                          [](Scope& s, const Outputs& x) { return erf(s, x[0]); });
  const double expected[] = {0, 0.5204998778, 0.8427007929, 0.9953222650};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(y.data<double>()[i], expected[i], 1e-10);
}

TEST(Math, FunctionsKeepTheShape) {
  for (const Unary op : kFunctions)
    expect_shape({{-1, 3}}, [=](Scope& s, const Outputs& x) { return op(s, x[0]); }, {-1, 3});
}

TEST(Math, GradientsOfFunctionsAreCentralDifferences) {
  for (const Unary op : kFunctions)
    expect_gradients({Tensor::of<double>({3}, {0.5, 1, -0.4})},
                     [=](Scope& s, const Outputs& x) { return op(s, x[0]); });
}

TEST(SquaredDifference, IsBroadcast) {
  const auto build = [](Scope& s, const Outputs& x) { return squared_difference(s, x[0], x[1]); };
  const Tensor y =
      run_op({Tensor::of<std::int32_t>({2, 1}, {1, 5}), Tensor::of<std::int32_t>({2}, {2, -1})}, build);
  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_THAT(y.span<std::int32_t>(), ElementsAre(1, 4, 9, 36));
  expect_shape({{-1, 1}, {3}}, build, {-1, 3});
}

TEST(SquaredDifference, GradientIsSummedWhereItIsBroadcast) {
  for (const bool known_shapes : {true, false})
    expect_gradients({test_numbers({2, 1}), test_numbers({3}, 1)},
                     [](Scope& s, const Outputs& x) { return squared_difference(s, x[0], x[1]); },
                     {.known_shapes = known_shapes});
}

TEST(ClipByValue, MovesWhatLiesOutside) {
  const Tensor y = run_op({Tensor::of<float>({4}, {-3, -1, 0.5f, 7})},
                          [](Scope& s, const Outputs& x) { return clip_by_value(s, x[0], -1.0, 2.0); });
  EXPECT_THAT(y.span<float>(), ElementsAre(-1, -1, 0.5f, 2));
}

TEST(ClipByValue, TakesALimitForEachElement) {
  const Tensor y = run_op({Tensor::of<std::int64_t>({3}, {-3, 0, 7}),
                           Tensor::of<std::int64_t>({3}, {-5, 1, 0}), Tensor::scalar<std::int64_t>(4)},
                          [](Scope& s, const Outputs& x) { return clip_by_value(s, x[0], x[1], x[2]); });
  EXPECT_THAT(y.span<std::int64_t>(), ElementsAre(-3, 1, 4));
}

TEST(ClipByValue, KeepsNan) {
  const Tensor y = run_op({Tensor::scalar(std::nanf(""))},
                          [](Scope& s, const Outputs& x) { return clip_by_value(s, x[0], -1.0, 1.0); });
  EXPECT_TRUE(std::isnan(y.value<float>()));
}

TEST(ClipByValue, GradientFlowsToWhatWasChosen) {
  expect_gradients({Tensor::of<double>({3}, {-3, 0.5, 7}), Tensor::of<double>({3}, {-1, 0, -2}),
                    Tensor::of<double>({}, {2})},
                   [](Scope& s, const Outputs& x) { return clip_by_value(s, x[0], x[1], x[2]); });
}

TEST(ClipByValue, GradientFlowsToTheElementOnALimit) {
  const Tensor dx = run_op({Tensor::of<float>({2}, {-1, 2})}, [](Scope& s, const Outputs& x) {
    return gradients(s, {clip_by_value(s, x[0], -1.0, 2.0)}, x)[0];
  });
  EXPECT_THAT(dx.span<float>(), ElementsAre(1, 1));
}

TEST(ClipByValue, RefusesLimitsThatDoNotFit) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {2});
  EXPECT_THAT([&] { clip_by_value(s, x, 1.0, -1.0); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("low is 1 and high is -1")));
  const Output wide = placeholder(s, DType::f32, {3, 2});
  EXPECT_THAT([&] { clip_by_value(s, x, wide, wide); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[3,2]"), HasSubstr("[2]"))));
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
