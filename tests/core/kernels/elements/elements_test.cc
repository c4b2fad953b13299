// The functors that GPUs run, on the host, against the CPU's kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <kolo/core/kernels/cpu/loops/activation_loops.h>
#include <kolo/core/kernels/cpu/loops/element_loops.h>
#include <kolo/core/kernels/elements/activations.h>
#include <kolo/core/kernels/elements/binary.h>
#include <kolo/core/kernels/elements/cast.h>
#include <kolo/core/kernels/elements/folds.h>
#include <kolo/core/kernels/elements/small_float.h>
#include <kolo/core/kernels/elements/unary.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/tensor/tensor.h>

#include "tests/core/kernels/elements/numbers.h"

namespace kolo::detail {
namespace {

// How many numbers of the type lie between the two.
template <typename T>
double ulps(T a, T b) {
  if (same_bits(a, b)) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  const T size = std::max({std::abs(a), std::abs(b), std::numeric_limits<T>::min()});
  return std::abs(static_cast<double>(a) - static_cast<double>(b)) /
         static_cast<double>(std::nextafter(size, std::numeric_limits<T>::infinity()) - size);
}

/// most_ulps: 0 asks for the same bits.
template <typename T, typename Result, typename Op>
void expect_like(const Op& op, BinaryLoop loop, const std::string& name, double most_ulps = 0) {
  const auto [a, b] = pairs<T>();
  std::vector<T> x = a, y = b;
  if constexpr (std::is_integral_v<T>)  // what no kernel is given
    std::replace(y.begin(), y.end(), T(0), T(3));
  std::unique_ptr<Result[]> wanted(new Result[x.size()]);
  loop(x.data(), 1, y.data(), 1, wanted.get(), static_cast<std::int64_t>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Result got = op(x[i], y[i]);
    if constexpr (std::is_floating_point_v<Result>) {
      if (ulps(got, wanted[i]) <= most_ulps) continue;
    } else if (got == wanted[i]) {
      continue;
    }
    FAIL() << name << "(" << x[i] << ", " << y[i] << ") is " << got << ", on the CPU " << wanted[i];
  }
}

template <typename T, typename Result, typename Op>
void expect_like(const Op& op, UnaryLoop loop, const std::string& name, double most_ulps = 0) {
  const std::vector<T> x = pairs<T>().first;
  std::unique_ptr<Result[]> wanted(new Result[x.size()]);
  loop(x.data(), wanted.get(), static_cast<std::int64_t>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Result got = op(x[i]);
    if constexpr (std::is_floating_point_v<Result>) {
      if (ulps(got, wanted[i]) <= most_ulps) continue;
    } else if (got == wanted[i]) {
      continue;
    }
    FAIL() << name << "(" << x[i] << ") is " << got << ", on the CPU " << wanted[i];
  }
}

template <typename T>
class ElementFunctors : public ::testing::Test {
 protected:
  static constexpr DType kType = dtype_of<T>();
};
using Numbers = ::testing::Types<float, double, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(ElementFunctors, Numbers);

TYPED_TEST(ElementFunctors, OfTwoElementsGiveTheBitsOfTheCpu) {
  using T = TypeParam;
  const auto check = [this](const auto& op, BinaryOp name, const char* text) {
    expect_like<T, T>(op, binary_loop(name, this->kType), text);
  };
  if (std::is_floating_point_v<T>) {  // signed sums and products of any bits overflow
    check(elements::Add(), BinaryOp::add, "add");
    check(elements::Sub(), BinaryOp::sub, "sub");
    check(elements::Mul(), BinaryOp::mul, "mul");
    check(elements::SquaredDifference(), BinaryOp::squared_difference, "squared_difference");
  }
  check(elements::Div(), BinaryOp::div, "div");
  check(elements::Maximum(), BinaryOp::maximum, "maximum");
  check(elements::Minimum(), BinaryOp::minimum, "minimum");
  check(elements::FloorDiv(), BinaryOp::floor_div, "floor_div");
  check(elements::FloorMod(), BinaryOp::floor_mod, "floor_mod");
}

TYPED_TEST(ElementFunctors, CompareAsTheCpuDoes) {
  using T = TypeParam;
  const auto check = [this](const auto& op, Comparison name, const char* text) {
    expect_like<T, bool>(op, comparison_loop(name, this->kType), text);
  };
  check(elements::Equal(), Comparison::equal, "equal");
  check(elements::NotEqual(), Comparison::not_equal, "not_equal");
  check(elements::Less(), Comparison::less, "less");
  check(elements::LessEqual(), Comparison::less_equal, "less_equal");
  check(elements::Greater(), Comparison::greater, "greater");
  check(elements::GreaterEqual(), Comparison::greater_equal, "greater_equal");
}

template <typename T>
class RealFunctors : public ElementFunctors<T> {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RealFunctors, Reals);

TYPED_TEST(RealFunctors, OfOneElementGiveTheBitsOfTheCpu) {
  using T = TypeParam;
  const auto check = [this](const auto& op, UnaryOp name, const char* text) {
    expect_like<T, T>(op, unary_loop(name, this->kType), text);
  };
  check(elements::Neg(), UnaryOp::neg, "neg");
  check(elements::Abs(), UnaryOp::abs, "abs");
  check(elements::Sign(), UnaryOp::sign, "sign");
  check(elements::Square(), UnaryOp::square, "square");
  check(elements::Sqrt(), UnaryOp::sqrt, "sqrt");
  check(elements::Rsqrt(), UnaryOp::rsqrt, "rsqrt");
  check(elements::Relu(), UnaryOp::relu, "relu");
  check(elements::Floor(), UnaryOp::floor, "floor");
  check(elements::Ceil(), UnaryOp::ceil, "ceil");
  check(elements::Round(), UnaryOp::round, "round");
  check(elements::Reciprocal(), UnaryOp::reciprocal, "reciprocal");
}

TYPED_TEST(RealFunctors, TellWhatIsNoNumberAsTheCpuDoes) {
  using T = TypeParam;
  const auto check = [this](const auto& op, UnaryOp name, const char* text) {
    expect_like<T, bool>(op, unary_loop(name, this->kType), text);
  };
  check(elements::IsNan(), UnaryOp::is_nan, "is_nan");
  check(elements::IsInf(), UnaryOp::is_inf, "is_inf");
  check(elements::IsFinite(), UnaryOp::is_finite, "is_finite");
}

// The host's library here, Highway's there.
TYPED_TEST(RealFunctors, OfTheLibraryAreWithinAFewUnitsOfTheCpu) {
  using T = TypeParam;
  const auto check = [this](const auto& op, UnaryOp name, const char* text, double most) {
    expect_like<T, T>(op, unary_loop(name, this->kType), text, most);
  };
  check(elements::Exp(), UnaryOp::exp, "exp", 2);
  check(elements::Log(), UnaryOp::log, "log", 2);
  check(elements::Log1p(), UnaryOp::log1p, "log1p", 2);
  check(elements::Expm1(), UnaryOp::expm1, "expm1", 2);
  check(elements::Tanh(), UnaryOp::tanh, "tanh", 4);
  check(elements::Sigmoid(), UnaryOp::sigmoid, "sigmoid", 4);
  check(elements::Erf(), UnaryOp::erf, "erf", 2);
  check(elements::Sin(), UnaryOp::sin, "sin", 2);
  check(elements::Cos(), UnaryOp::cos, "cos", 2);
}

TYPED_TEST(RealFunctors, OfGradientsGiveTheBitsOfTheCpuWhereNothingIsContracted) {
  using T = TypeParam;
  expect_like<T, T>(elements::ReluGrad(), binary_loop(BinaryOp::relu_grad, this->kType), "relu_grad");
  // 1 − y² is one rounding less where the CPU has fused multiply-add.
  for (const T y : {T(0), T(0.25), T(-0.75), T(0.999), T(-1)}) {
    const T dy = 3;
    T tanh_grad = 0, sigmoid_grad = 0;
    binary_loop(BinaryOp::tanh_grad, this->kType)(&dy, 1, &y, 1, &tanh_grad, 1);
    binary_loop(BinaryOp::sigmoid_grad, this->kType)(&dy, 1, &y, 1, &sigmoid_grad, 1);
    const T unit = 3 * 2 * std::numeric_limits<T>::epsilon();
    EXPECT_NEAR(elements::TanhGrad()(dy, y), tanh_grad, unit);
    EXPECT_NEAR(elements::SigmoidGrad()(dy, y), sigmoid_grad, unit);
  }
}

template <typename To, typename From>
void expect_casts_like() {
  const std::vector<From> x = pairs<From>().first;
  Graph graph;
  const Scope s(graph);
  const auto elements = static_cast<std::int64_t>(x.size());
  const Output from = placeholder(s, dtype_of<From>(), {elements});
  const Output to = cast(s, from, dtype_of<To>());
  Session session(graph);
  const Tensor wanted = session.run(to, {{from, Tensor::of<From>({elements}, std::span<const From>(x))}});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const To got = elements::Cast<To>()(x[i]), cpu = wanted.data<To>()[i];
    bool same = got == cpu;
    if constexpr (std::is_floating_point_v<To>) same = same_bits(got, cpu);
    ASSERT_TRUE(same) << "cast of " << x[i] << " to " << name(dtype_of<To>()) << " is " << got
                      << ", on the CPU " << cpu;
  }
}

TYPED_TEST(ElementFunctors, CastAsTheCpuDoes) {
  using T = TypeParam;
  expect_casts_like<float, T>();
  expect_casts_like<double, T>();
  expect_casts_like<std::int32_t, T>();
  expect_casts_like<std::int64_t, T>();
  expect_casts_like<std::uint8_t, T>();
  expect_casts_like<bool, T>();
}

// A NaN on either side stays, whatever else is folded.
TYPED_TEST(RealFunctors, FoldsKeepANan) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const T x : special_values<T>()) {
    EXPECT_TRUE(std::isnan(elements::MaxFold::join(x, nan)) && std::isnan(elements::MaxFold::join(nan, x)));
    EXPECT_TRUE(std::isnan(elements::MinFold::join(x, nan)) && std::isnan(elements::MinFold::join(nan, x)));
    if (std::isnan(x)) continue;
    EXPECT_EQ(elements::MaxFold::join(elements::MaxFold::start<T>(), x), x);
    EXPECT_EQ(elements::MinFold::join(elements::MinFold::start<T>(), x), x);
  }
}

// Where a function cancels (1 + erf, 1 − t²) or is small beside its terms, what counts is their size.
template <typename Function>
void expect_activation_like(Activation activation, const char* name) {
  const std::vector<float> x = pairs<float>().first;
  const auto count = static_cast<std::int64_t>(x.size());
  const float alpha = 0.75f;
  std::vector<float> values(x.size()), slopes(x.size()), ones(x.size(), 1);
  activation_loop(activation, DType::f32)(x.data(), alpha, values.data(), count);
  activation_grad_loop(activation, DType::f32)(ones.data(), x.data(), alpha, slopes.data(), count);
  const auto check = [&](float got, float cpu, float at, const char* what) {
    if (same_bits(got, cpu)) return;
    const float size = std::max({1.0f, std::abs(cpu), std::min(std::abs(at), 10.0f)});
    ASSERT_NEAR(got, cpu, 1e-6f * size) << name << what << "(" << at << ")";
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    check(elements::Activate<Function>{alpha}(x[i]), values[i], x[i], "");
    check(elements::ActivateGrad<Function>{alpha}(1, x[i]), slopes[i], x[i], "'");
  }
}

TEST(ActivationFunctors, AreNearTheCpus) {
  expect_activation_like<elements::Gelu>(Activation::gelu, "gelu");
  expect_activation_like<elements::GeluTanh>(Activation::gelu_tanh, "gelu_tanh");
  expect_activation_like<elements::Swish>(Activation::swish, "swish");
  expect_activation_like<elements::Elu>(Activation::elu, "elu");
  expect_activation_like<elements::Selu>(Activation::selu, "selu");
  expect_activation_like<elements::LeakyRelu>(Activation::leaky_relu, "leaky_relu");
  expect_activation_like<elements::Softplus>(Activation::softplus, "softplus");
  expect_activation_like<elements::Relu6>(Activation::relu6, "relu6");
}

#ifdef __FLT16_MAX__
// By the compiler's own f16: each number, and what lies between two neighbours, halfway and beside it.
TEST(SmallFloatFunctors, RoundEveryHalfAsTheCompilerDoes) {
  const auto check = [](float x) {
    const auto wanted = std::bit_cast<std::uint16_t>(static_cast<_Float16>(x));
    const std::uint16_t got = elements::Cast<elements::F16>()(x).bits;
    if (std::isnan(x)) ASSERT_TRUE((got & 0x7c00) == 0x7c00 && (got & 0x3ff) != 0) << x;
    else ASSERT_EQ(got, wanted) << x;
  };
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const elements::F16 half = std::bit_cast<elements::F16>(static_cast<std::uint16_t>(bits));
    const auto value = static_cast<float>(half);
    const auto wanted = static_cast<float>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits)));
    ASSERT_TRUE(same_bits(value, wanted)) << bits;
    check(value);
    if (!std::isfinite(value) || (bits & 0x7fff) == 0x7bff) continue;
    const auto next = std::bit_cast<elements::F16>(static_cast<std::uint16_t>(bits + 1));
    const float middle = value + (static_cast<float>(next) - value) / 2;
    for (const float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 2 * middle)}) check(x);
  }
  for (const float x : pairs<float>().first) check(x);
}
#endif

TEST(SmallFloatFunctors, RoundEveryBfloat16ToTheNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto value = static_cast<float>(std::bit_cast<elements::Bf16>(static_cast<std::uint16_t>(bits)));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), bits << 16);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(elements::Cast<elements::Bf16>()(value))));
      continue;
    }
    if (!std::isfinite(value)) continue;
    const auto round = [&](std::uint32_t low) {
      return elements::Cast<elements::Bf16>()(std::bit_cast<float>(bits << 16 | low)).bits;
    };
    for (const std::uint32_t low : {0u, 1u, 0x7fffu}) ASSERT_EQ(round(low), bits) << low;
    for (const std::uint32_t low : {0x8001u, 0xffffu}) ASSERT_EQ(round(low), bits + 1) << low;
    ASSERT_EQ(round(0x8000u), bits + (bits & 1)) << bits;
  }
}

}  // namespace
}  // namespace kolo::detail
