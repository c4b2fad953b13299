// Numbers with which the tests of functors meet what is rare.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

namespace kolo::detail {

inline constexpr std::size_t kRandom = 1 << 20;

template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <typename T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_integral_v<T>) return {0, 1, 2, 7, -1, -2, -7, Limits::max(), Limits::min()};
  else
    return {0,
            -T(0),
            1,
            -1,
            T(0.5),
            T(-0.5),
            T(1.5),
            T(2.5),
            T(-2.5),
            Limits::quiet_NaN(),
            Limits::infinity(),
            -Limits::infinity(),
            Limits::denorm_min(),
            -Limits::denorm_min(),
            Limits::min(),
            Limits::max(),
            Limits::lowest(),
            T(88.8),
            T(-104),
            T(1e-30)};
}

// Any bits half of the time, numbers of everyday size else; behind them each special value with each other.
template <typename T>
std::pair<std::vector<T>, std::vector<T>> make_pairs() {
  std::mt19937_64 random(20221122);
  std::normal_distribution<double> everyday(0, 3);
  const auto number = [&](std::size_t i) {
    if (i % 2 == 0 || std::is_integral_v<T>) return std::bit_cast<T>(static_cast<BitsOf<T>>(random()));
    return static_cast<T>(everyday(random));
  };
  std::pair<std::vector<T>, std::vector<T>> made;
  for (std::size_t i = 0; i < kRandom; ++i) {
    made.first.push_back(number(i));
    made.second.push_back(number(i));
  }
  for (const T a : special_values<T>())
    for (const T b : special_values<T>()) {
      made.first.push_back(a);
      made.second.push_back(b);
    }
  return made;
}

/// Made once: a million random numbers take a while.
template <typename T>
const std::pair<std::vector<T>, std::vector<T>>& pairs() {
  static const auto made = make_pairs<T>();
  return made;
}

/// One NaN is as good as another.
template <typename T>
bool same_bits(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return (std::isnan(a) && std::isnan(b)) || std::bit_cast<BitsOf<T>>(a) == std::bit_cast<BitsOf<T>>(b);
  else return a == b;
}

}  // namespace kolo::detail
