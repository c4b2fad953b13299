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
#include <kolo/core/kernels/elements/cast.h>
#include <kolo/core/kernels/elements/folds.h>
#include <kolo/core/kernels/elements/small_float.h>
#include <kolo/core/kernels/elements/table.h>
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

using elements::kIsOneOf;

TYPED_TEST(ElementFunctors, OfTwoElementsGiveTheBitsOfTheCpu) {
  using T = TypeParam;
  elements::BinaryOps::each([this](auto row) {
    using Op = typename decltype(row)::type;
    if constexpr (elements::cpu_takes<T>(Op::kNumbers)) {
      using Result = std::invoke_result_t<typename Op::Functor, T, T>;
      // Signed sums and products of any bits overflow.
      constexpr bool overflows =
          std::is_integral_v<T> &&
          kIsOneOf<Op, elements::AddOp, elements::SubOp, elements::MulOp, elements::SquaredDifferenceOp>;
      // One rounding less where the CPU has fused multiply-add: see below.
      constexpr bool contracts = kIsOneOf<Op, elements::TanhGradOp, elements::SigmoidGradOp>;
      if (!overflows && !contracts)
        expect_like<T, Result>(typename Op::Functor(), binary_loop(Op::kName, this->kType), Op::kName);
    } else {
      EXPECT_EQ(binary_loop(Op::kName, this->kType), nullptr) << Op::kName;
    }
  });
}

TYPED_TEST(ElementFunctors, OfOneElementGiveTheBitsOfTheCpu) {
  using T = TypeParam;
  elements::UnaryOps::each([this](auto row) {
    using Op = typename decltype(row)::type;
    if constexpr (elements::cpu_takes<T>(Op::kNumbers)) {
      using Result = std::invoke_result_t<typename Op::Functor, T>;
      if (std::is_integral_v<T>) return;  // the negative of the smallest number overflows
      // The host's library here, Highway's there: a few units in the last place.
      const double most = std::is_same_v<Op, elements::ExpOp>                   ? 2
                          : kIsOneOf<Op, elements::TanhOp, elements::SigmoidOp> ? 4
                                                                                : 0;
      expect_like<T, Result>(typename Op::Functor(), unary_loop(Op::kName, this->kType), Op::kName, most);
    } else {
      EXPECT_EQ(unary_loop(Op::kName, this->kType), nullptr) << Op::kName;
    }
  });
}

template <typename T>
class RealFunctors : public ElementFunctors<T> {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RealFunctors, Reals);

TYPED_TEST(RealFunctors, OfGradientsAreWithinOneRoundingOfTheCpu) {
  using T = TypeParam;
  // 1 − y² is one rounding less where the CPU has fused multiply-add.
  for (const T y : {T(0), T(0.25), T(-0.75), T(0.999), T(-1)}) {
    const T dy = 3;
    T tanh_grad = 0, sigmoid_grad = 0;
    binary_loop("TanhGrad", this->kType)(&dy, 1, &y, 1, &tanh_grad, 1);
    binary_loop("SigmoidGrad", this->kType)(&dy, 1, &y, 1, &sigmoid_grad, 1);
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
void expect_activation_like(const char* name) {
  const std::vector<float> x = pairs<float>().first;
  const auto count = static_cast<std::int64_t>(x.size());
  const float alpha = 0.75f;
  std::vector<float> values(x.size()), slopes(x.size()), ones(x.size(), 1);
  activation_loop(name, DType::f32)(x.data(), alpha, values.data(), count);
  activation_grad_loop(name, DType::f32)(ones.data(), x.data(), alpha, slopes.data(), count);
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
  elements::Activations::each([](auto row) {
    using Function = typename decltype(row)::type;
    expect_activation_like<Function>(Function::kName);
  });
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
