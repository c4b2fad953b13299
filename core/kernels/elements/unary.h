// Ops of one element, as functors; see binary.h.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include <kolo/core/kernels/elements/host_device.h>

namespace kolo::elements {

// clang-format off
struct Neg { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return -x; } };
struct Abs { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return x < 0 ? -x : x; } };
struct Square { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return x * x; } };
struct Relu { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return x < 0 ? T(0) : x; } };
struct Sqrt { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return std::sqrt(x); } };
struct Rsqrt { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return 1 / std::sqrt(x); } };
struct Exp { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return std::exp(x); } };
struct Log { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return std::log(x); } };
struct Log1p { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return std::log1p(x); } };
struct Expm1 { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return std::expm1(x); } };
struct Tanh { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return std::tanh(x); } };
struct Sigmoid { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return 1 / (1 + std::exp(-x)); } };
struct Floor { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return std::floor(x); } };
struct Ceil { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return std::ceil(x); } };
// Halves to the even neighbour.
struct Round { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return std::nearbyint(x); } };
struct Reciprocal { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return 1 / x; } };
struct Sin { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return std::sin(x); } };
struct Cos { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return std::cos(x); } };
struct Erf { template <typename T> KOLO_HOST_DEVICE T operator()(T x) const { return std::erf(x); } };
struct IsNan { template <typename T> KOLO_HOST_DEVICE bool operator()(T x) const { return is_nan(x); } };
struct IsInf { template <typename T> KOLO_HOST_DEVICE bool operator()(T x) const { return std::abs(x) == T(INFINITY); } };
// Infinity times zero is NaN.
struct IsFinite { template <typename T> KOLO_HOST_DEVICE bool operator()(T x) const { return !is_nan(x * T(0)); } };
struct LogicalNot { KOLO_HOST_DEVICE bool operator()(bool x) const { return !x; } };
// clang-format on
struct Sign {
  template <typename T>
  KOLO_HOST_DEVICE T operator()(T x) const {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x;  // a NaN stays one
  }
};

}  // namespace kolo::elements
