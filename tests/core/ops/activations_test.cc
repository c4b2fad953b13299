#include <kolo/core/ops/activations.h>

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tests/core/ops/compare_tensors.h"

namespace kolo {
namespace {

struct Case {
  std::string name;
  Output (*build)(const Scope& s, Output x);
  double (*expected)(double x);
  double at_minus_infinity;  // the limit; NaN: not asked for
};

const double kUnasked = std::numeric_limits<double>::quiet_NaN();
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

const Case kCases[] = {
    {"gelu", [](const Scope& s, Output x) { return gelu(s, x); },
     [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2)); }, kUnasked},
    {"gelu_tanh", [](const Scope& s, Output x) { return gelu(s, x, true); },
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); },
     kUnasked},
    {"swish", swish, [](double x) { return x * sigmoid_of(x); }, kUnasked},
    {"elu", [](const Scope& s, Output x) { return elu(s, x); },
     [](double x) { return x > 0 ? x : std::expm1(x); }, -1},
    {"elu_of_other_alpha", [](const Scope& s, Output x) { return elu(s, x, 0.5); },
     [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); }, -0.5},
    {"selu", selu,
     [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); },
     -1.0507009873554805 * 1.6732632423543772},
    {"leaky_relu", [](const Scope& s, Output x) { return leaky_relu(s, x); },
     [](double x) { return x > 0 ? x : 0.2 * x; }, -std::numeric_limits<double>::infinity()},
    {"softplus", softplus, [](double x) { return std::log1p(std::exp(x)); }, 0},
    {"relu6", relu6, [](double x) { return std::fmin(std::fmax(x, 0), 6); }, 0},
};

class Activations : public testing::TestWithParam<Case> {
 protected:
  static Output build(Scope& s, const Outputs& in) { return GetParam().build(s, in[0]); }
};

// Where the functions bend; an odd number, so that vectors have a rest.
Tensor range() {
  Tensor x(DType::f64, {16 * 24 + 7});
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x.data<double>()[i] = (static_cast<double>(i) + 0.5) / 16 - 12;
  return x;
}

TEST_P(Activations, HaveTheValuesOfTheirFormula) {
  const Tensor x = range();
  Tensor y(DType::f64, x.shape());
  for (std::int64_t i = 0; i < x.elements(); ++i)
    y.data<double>()[i] = GetParam().expected(x.data<double>()[i]);
  expect_both_types({x}, y, 2e-6, build);
}

TEST_P(Activations, HaveTheGradientOfTheirValues) {
  expect_gradients({range()}, build);
  expect_same_gradients({range()}, 3e-6, build);
}

TEST_P(Activations, TakeLargeAndNonFiniteNumbers) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = Tensor::of<double>({5}, {-infinity, -1e4, 1e4, infinity, std::nan("")});
    const Tensor y = detail::as_double(run_op({dtype == DType::f32 ? to_f32(x) : x}, build));
    const double* values = y.data<double>();
    if (!std::isnan(GetParam().at_minus_infinity)) {
      EXPECT_FLOAT_EQ(values[0], GetParam().at_minus_infinity);
    }
    EXPECT_NEAR(values[1], GetParam().expected(-1e4), 1e-3) << name(dtype);
    EXPECT_FLOAT_EQ(values[2], GetParam().name == "relu6"  ? 6
                               : GetParam().name == "selu" ? 10507.009873554805
                                                           : 1e4);
    EXPECT_EQ(values[3], GetParam().name == "relu6" ? 6 : infinity);
    EXPECT_TRUE(std::isnan(values[4]));
  }
}

TEST_P(Activations, HaveFiniteGradientsAtLargeNumbers) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = Tensor::of<double>({4}, {-1e15, -200, 200, 1e15});
    const Tensor dx = run_op({dtype == DType::f32 ? to_f32(x) : x},
                             [](Scope& s, const Outputs& in) { return gradients(s, {build(s, in)}, in)[0]; });
    const Tensor values = detail::as_double(dx);
    const double slope = GetParam().name == "relu6" ? 0 : GetParam().name == "selu" ? 1.0507009873554805 : 1;
    const double left = GetParam().name == "leaky_relu" ? 0.2 : 0;
    for (int i = 0; i < 4; ++i)
      EXPECT_NEAR(values.data<double>()[i], i < 2 ? left : slope, 1e-6) << name(dtype) << " element " << i;
  }
}

TEST_P(Activations, KeepTheShape) {
  expect_shape({{-1, 3}}, build, {-1, 3});
  EXPECT_EQ(run_op({Tensor::zeros(DType::f32, {0, 3})}, build).shape(), (Shape{0, 3}));
}

INSTANTIATE_TEST_SUITE_P(Functions, Activations, testing::ValuesIn(kCases),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace kolo
