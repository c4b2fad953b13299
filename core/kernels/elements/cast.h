// From one type of numbers to another, as a functor; see binary.h.
#pragma once

#include <limits>
#include <type_traits>

#include <kolo/core/kernels/elements/host_device.h>

namespace kolo::elements {

/// A type that only stores what float computes: kolo::Half, F16 and their like.
template <typename T>
concept SmallFloat = std::is_class_v<T>;

/// Float to whole number beyond its range is undefined in C++: the nearest number it has, 0 for NaN. From and
/// to small floats by way of float.
template <typename To>
struct Cast {
  template <typename From>
  KOLO_HOST_DEVICE To operator()(From x) const {
    if constexpr (SmallFloat<From>) return (*this)(static_cast<float>(x));
    else if constexpr (SmallFloat<To>) return To(static_cast<float>(x));
    else if constexpr (std::is_same_v<To, bool>) return x != From(0);
    else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) return to_integer(x);
    else return static_cast<To>(x);
  }

 private:
  template <typename From>
  KOLO_HOST_DEVICE static To to_integer(From x) {
    using Limits = std::numeric_limits<To>;
    // 2^digits is exact in every float type, max() itself is not.
    constexpr From limit = From(2) * static_cast<From>(To(1) << (Limits::digits - 1));
    // Constants, since nvcc takes the functions for some of the host.
    constexpr To most = Limits::max(), least = Limits::lowest();
    if (is_nan(x)) return 0;
    if (x >= limit) return most;
    if (x <= (std::is_signed_v<To> ? -limit : From(0))) return least;
    return static_cast<To>(x);
  }
};

}  // namespace kolo::elements
