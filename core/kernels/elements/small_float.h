// f16 and bf16 as a GPU's kernels store them; arithmetic is done in float. Laid out as kolo::Half and
// kolo::BFloat16 are, which nvcc does not see.
#pragma once

#include <cstdint>

#include <kolo/core/tensor/small_float.h>

namespace kolo::elements {

struct F16 {
  std::uint16_t bits;
  F16() = default;
  KOLO_HOST_DEVICE explicit F16(float value) : bits(detail::half_bits(value)) {}
  KOLO_HOST_DEVICE explicit operator float() const { return detail::float_of_half(bits); }
};

struct Bf16 {
  std::uint16_t bits;
  Bf16() = default;
  KOLO_HOST_DEVICE explicit Bf16(float value) : bits(detail::bfloat16_bits(value)) {}
  KOLO_HOST_DEVICE explicit operator float() const { return detail::float_of_bfloat16(bits); }
};

}  // namespace kolo::elements
