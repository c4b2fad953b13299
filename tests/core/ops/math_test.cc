#include <kolo/core/ops/math.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>

#include "tests/core/gradient_check.h"
#include "tests/core/ops/unary_values.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

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

}  // namespace
}  // namespace kolo
