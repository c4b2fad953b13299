#pragma once

#include <cstdint>
#include <random>

#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

/// f32, from −1 to 1, the same for a seed.
inline Tensor random_numbers(const Shape& shape, std::uint32_t seed) {
  std::mt19937 random(seed);
  Tensor made(DType::f32, shape);
  for (float& x : made.span<float>()) x = static_cast<float>(random()) * 0x1p-31f - 1;
  return made;
}

}  // namespace kolo::detail
