// How two partial results of a reduction become one, as functors; see binary.h. T is the type of what is
// folded, A that of the accumulator; start() changes nothing that it is joined with.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include <kolo/core/kernels/elements/host_device.h>

namespace kolo::elements {

// Sums are kept in the wide type: the error of a float sum then does not grow with its length.
template <typename T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;

// Constants, since nvcc takes the functions for some of the host.
template <typename T>
inline constexpr T kLeast = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                                        : std::numeric_limits<T>::lowest();
template <typename T>
inline constexpr T kMost = std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity()
                                                       : std::numeric_limits<T>::max();

struct SumFold {
  template <typename T>
  using Accumulator = Wide<T>;
  template <typename T>
  KOLO_HOST_DEVICE static Wide<T> start() {
    return 0;
  }
  template <typename A>
  KOLO_HOST_DEVICE static A join(A a, A b) {
    return a + b;
  }
};

struct ProductFold {
  template <typename T>
  using Accumulator = Wide<T>;
  template <typename T>
  KOLO_HOST_DEVICE static Wide<T> start() {
    return 1;
  }
  template <typename A>
  KOLO_HOST_DEVICE static A join(A a, A b) {
    return a * b;
  }
};

// A NaN stays: it must not be hidden.
struct MaxFold {
  template <typename T>
  using Accumulator = T;
  template <typename T>
  KOLO_HOST_DEVICE static T start() {
    return kLeast<T>;
  }
  template <typename A>
  KOLO_HOST_DEVICE static A join(A a, A b) {
    return b > a || is_nan(b) ? b : a;
  }
};

struct MinFold {
  template <typename T>
  using Accumulator = T;
  template <typename T>
  KOLO_HOST_DEVICE static T start() {
    return kMost<T>;
  }
  template <typename A>
  KOLO_HOST_DEVICE static A join(A a, A b) {
    return b < a || is_nan(b) ? b : a;
  }
};

struct AnyFold {
  template <typename T>
  using Accumulator = bool;
  template <typename T>
  KOLO_HOST_DEVICE static bool start() {
    return false;
  }
  KOLO_HOST_DEVICE static bool join(bool a, bool b) { return a || b; }
};

struct AllFold {
  template <typename T>
  using Accumulator = bool;
  template <typename T>
  KOLO_HOST_DEVICE static bool start() {
    return true;
  }
  KOLO_HOST_DEVICE static bool join(bool a, bool b) { return a && b; }
};

}  // namespace kolo::elements
