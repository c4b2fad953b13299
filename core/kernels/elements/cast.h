// From one type of numbers to another, as a functor; see binary.h.
#pragma once

#include <limits>
#include <type_traits>

#include <kolo/core/kernels/elements/host_device.h>

namespace kolo::elements {

/// Float to whole number beyond its range is undefined in C++: the nearest number it has, 0 for NaN.
template <typename To>
struct Cast {
  template <typename From>
  KOLO_HOST_DEVICE To operator()(From x) const {
    if constexpr (std::is_same_v<To, bool>) return x != From(0);
    else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return to_integer(x);
    else return static_cast<To>(x);
  }

 private:
  // Not called below: nvcc takes them for functions of the host.
  static constexpr To kMost = std::numeric_limits<To>::max();
  static constexpr To kLeast = std::numeric_limits<To>::lowest();
  static constexpr int kDigits = std::numeric_limits<To>::digits;

  template <typename From>
  KOLO_HOST_DEVICE static To to_integer(From x) {
    // 2^digits is exact in every float type, max() itself is not.
    constexpr From limit = From(2) * static_cast<From>(To(1) << (kDigits - 1));
    if (is_nan(x)) return 0;
    if (x >= limit) return kMost;
    if (x <= (std::is_signed_v<To> ? -limit : From(0))) return kLeast;
    return static_cast<To>(x);
  }
};

}  // namespace kolo::elements
