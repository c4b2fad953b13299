// Ops of two elements, as functors: table.h has a row for each. A GPU's kernels run them, and the CPU's
// loops, where the compiler makes vectors of them.
#pragma once

#include <cmath>
#include <type_traits>

#include <kolo/core/kernels/elements/host_device.h>

namespace kolo::elements {

// clang-format off
struct Add { template <typename T> KOLO_HOST_DEVICE T operator()(T a, T b) const { return a + b; } };
struct Sub { template <typename T> KOLO_HOST_DEVICE T operator()(T a, T b) const { return a - b; } };
struct Mul { template <typename T> KOLO_HOST_DEVICE T operator()(T a, T b) const { return a * b; } };
struct Pow { template <typename T> KOLO_HOST_DEVICE T operator()(T a, T b) const { return std::pow(a, b); } };
// A NaN on either side gives NaN: a loss that went wrong must not be hidden. fmax() would hide it.
struct Maximum { template <typename T> KOLO_HOST_DEVICE T operator()(T a, T b) const { return a > b || is_nan(a) ? a : b; } };
struct Minimum { template <typename T> KOLO_HOST_DEVICE T operator()(T a, T b) const { return a < b || is_nan(a) ? a : b; } };
// Of the gradient dy and the op's output y.
struct TanhGrad { template <typename T> KOLO_HOST_DEVICE T operator()(T dy, T y) const { return dy * (1 - y * y); } };
struct SigmoidGrad { template <typename T> KOLO_HOST_DEVICE T operator()(T dy, T y) const { return dy * y * (1 - y); } };
struct ReluGrad { template <typename T> KOLO_HOST_DEVICE T operator()(T dy, T y) const { return y > 0 ? dy : T(0); } };
struct SquaredDifference { template <typename T> KOLO_HOST_DEVICE T operator()(T a, T b) const { return (a - b) * (a - b); } };

struct Equal { template <typename T> KOLO_HOST_DEVICE bool operator()(T a, T b) const { return a == b; } };
struct NotEqual { template <typename T> KOLO_HOST_DEVICE bool operator()(T a, T b) const { return a != b; } };
struct Less { template <typename T> KOLO_HOST_DEVICE bool operator()(T a, T b) const { return a < b; } };
struct LessEqual { template <typename T> KOLO_HOST_DEVICE bool operator()(T a, T b) const { return a <= b; } };
struct Greater { template <typename T> KOLO_HOST_DEVICE bool operator()(T a, T b) const { return a > b; } };
struct GreaterEqual { template <typename T> KOLO_HOST_DEVICE bool operator()(T a, T b) const { return a >= b; } };
struct LogicalAnd { KOLO_HOST_DEVICE bool operator()(bool a, bool b) const { return a && b; } };
struct LogicalOr { KOLO_HOST_DEVICE bool operator()(bool a, bool b) const { return a || b; } };
// clang-format on

struct Div {
  template <typename T>
  KOLO_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      // The smallest number by −1 overflows; it wraps around, as addition does.
      if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
    }
    return a / b;
  }
};

// The remainder has the sign of the divisor, the quotient is rounded down, as in Python.
struct FloorMod {
  template <typename T>
  KOLO_HOST_DEVICE T operator()(T a, T b) const {
    T rest;
    if constexpr (std::is_integral_v<T>) rest = b == -1 ? 0 : a % b;
    else rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
};
struct FloorDiv {
  template <typename T>
  KOLO_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return b != -1 && a % b != 0 && (a < 0) != (b < 0) ? a / b - 1 : Div()(a, b);
    else return std::floor(a / b);
  }
};

}  // namespace kolo::elements
