// Functions of numbers by names that vectors of numbers have as well (cpu/loops/lanes-inl.h): a formula in
// them is written once for both.
#pragma once

#include <cmath>

#include <kolo/core/kernels/elements/host_device.h>

namespace kolo::elements {

// clang-format off
template <typename T> KOLO_HOST_DEVICE T absolute(T x) { return std::abs(x); }
template <typename T> KOLO_HOST_DEVICE T square_root(T x) { return std::sqrt(x); }
template <typename T> KOLO_HOST_DEVICE T power(T x, T exponent) { return std::pow(x, exponent); }
template <typename T> KOLO_HOST_DEVICE T copy_sign(T x, T sign) { return std::copysign(x, sign); }
/// `no` also where one of a and b is NaN.
template <typename T> KOLO_HOST_DEVICE T where_greater(T a, T b, T yes, T no) { return a > b ? yes : no; }
template <typename T> KOLO_HOST_DEVICE T keep_nan(T x, T y) { return is_nan(x) ? x : y; }
template <typename T> KOLO_HOST_DEVICE T exponential(T x) { return std::exp(x); }
template <typename T> KOLO_HOST_DEVICE T exponential_minus_1(T x) { return std::expm1(x); }
template <typename T> KOLO_HOST_DEVICE T log_1_plus(T x) { return std::log1p(x); }
template <typename T> KOLO_HOST_DEVICE T hyperbolic_tangent(T x) { return std::tanh(x); }
// clang-format on

/// The standard normal distribution at a point: its function, and its density times √(2π), which share an
/// exponential.
template <typename T>
struct NormalAt {
  T distribution;
  T bell;
};
KOLO_HOST_DEVICE inline NormalAt<float> normal(float x) {
  return {0.5f * (1 + std::erf(x * 0.70710678118654752f)), std::exp(-0.5f * x * x)};
}
KOLO_HOST_DEVICE inline NormalAt<double> normal(double x) {
  return {0.5 * std::erfc(-x * 0.70710678118654752), std::exp(-0.5 * x * x)};
}

}  // namespace kolo::elements
