// Random numbers of several distributions, as functors: what a block of Philox's words stands for.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include <kolo/core/kernels/elements/normal_quantile.h>

namespace kolo::elements {

using Words = std::array<std::uint32_t, 4>;

// A block of words gives four floats or two doubles, whatever the distribution.
template <typename T>
inline constexpr int kPerBlock = std::is_same_v<T, float> ? 4 : 2;

// Number `i` of a block, uniform in [0, 1): as many bits as the type's mantissa holds, so that 1 is never
// rounded to.
template <typename T>
KOLO_HOST_DEVICE T uniform(const Words& words, int i) {
  if constexpr (std::is_same_v<T, float>) return static_cast<float>(words[i] >> 8) * 0x1p-24f;
  else return static_cast<double>((std::uint64_t{words[2 * i + 1]} << 32 | words[2 * i]) >> 11) * 0x1p-53;
}

struct Uniform {
  double low, high;
  template <typename T>
  KOLO_HOST_DEVICE void fill(const Words& words, T* out) const {
    const T from = static_cast<T>(low), width = static_cast<T>(high - low);
    // Rounding may reach `high`, which must stay outside.
    const T last = std::nextafter(static_cast<T>(high), from);
    for (int i = 0; i < kPerBlock<T>; ++i) out[i] = std::min(last, from + width * uniform<T>(words, i));
  }
};

// Box and Muller: "A note on the generation of random normal deviates", Annals of Mathematical Statistics 29
// (1958).
struct Normal {
  double mean, stddev;
  template <typename T>
  KOLO_HOST_DEVICE void fill(const Words& words, T* out) const {
    for (int i = 0; i < kPerBlock<T>; i += 2) {
      const T radius = std::sqrt(-2 * std::log(1 - uniform<T>(words, i)));  // 1 − u lies in (0, 1]
      const T angle = 2 * std::numbers::pi_v<T> * uniform<T>(words, i + 1);
      out[i] = static_cast<T>(mean) + static_cast<T>(stddev) * radius * std::cos(angle);
      out[i + 1] = static_cast<T>(mean) + static_cast<T>(stddev) * radius * std::sin(angle);
    }
  }
};

// By the inverse of the distribution, not by drawing again: every element then takes the same count of
// numbers.
struct TruncatedNormal {
  double mean, stddev;
  template <typename T>
  KOLO_HOST_DEVICE void fill(const Words& words, T* out) const {
    constexpr double kBelow = 0.022750131948179207;  // Φ(−2)
    for (int i = 0; i < kPerBlock<T>; ++i) {
      // The middle of the interval that the bits stand for: symmetric about 0.
      const double u =
          std::is_same_v<T, float> ? uniform<T>(words, i) + 0x1p-25 : uniform<T>(words, i) + 0x1p-54;
      const double x =
          std::clamp(detail::normal_quantile_within_two(kBelow + (1 - 2 * kBelow) * u), -2.0, 2.0);
      out[i] = static_cast<T>(mean + stddev * x);
    }
  }
};

}  // namespace kolo::elements
