// Random numbers that are the same on every machine: each depends on (seed, purpose, index, position) and
// nothing else.
#pragma once

#include <cstdint>

namespace kolo::models {

/// What the numbers are drawn for. The value is part of the stream: renumbering would change every picture
/// and order.
enum class RandomPurpose : std::uint64_t {
  sample_order = 1,
  digit_labels = 2,
  digit_shape = 3,
  digit_noise = 4,
  text_pieces = 5,
  sample_changes = 6
};

/// SplitMix64: the n-th number is a hash of key + n · γ (Steele, Lea, Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014; constants of Vigna's splitmix64.c). The standard library's distributions
/// and std::shuffle are not used for data: their results differ between implementations. One thread at a
/// time.
class CounterRandom {
 public:
  CounterRandom(std::uint64_t seed, RandomPurpose purpose, std::uint64_t index)
      : counter_(mix(mix(mix(seed + kGamma) + static_cast<std::uint64_t>(purpose)) + index)) {}

  std::uint64_t next() { return mix(counter_ += kGamma); }

  /// Uniform in [0, bound), bound > 0, without bias: Lemire, "Fast random integer generation in an interval",
  /// 2019.
  std::uint64_t below(std::uint64_t bound) {
    auto product = static_cast<Wide>(next()) * bound;
    if (static_cast<std::uint64_t>(product) < bound) {
      const std::uint64_t rejected = (0 - bound) % bound;
      while (static_cast<std::uint64_t>(product) < rejected) product = static_cast<Wide>(next()) * bound;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

  /// Uniform in [low, high), in steps of (high − low) / 2^53.
  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53);
  }

 private:
  __extension__ using Wide = unsigned __int128;  // no name of ISO C++
  static constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;

  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::uint64_t counter_;
};

}  // namespace kolo::models
