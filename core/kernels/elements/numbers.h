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
// clang-format on

}  // namespace kolo::elements
