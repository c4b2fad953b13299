// The bits of f16 and bf16 from those of a float and back, for the host and a GPU alike.
#pragma once

#include <bit>
#include <cstdint>

#include <kolo/core/base/host_device.h>

namespace kolo::detail {

/// Rounds to nearest even by way of the float's bits; subnormals, infinities and NaN included.
KOLO_HOST_DEVICE inline std::uint16_t half_bits(float value) {
  const auto f = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = f >> 16 & 0x8000;
  const std::uint32_t magnitude = f & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return static_cast<std::uint16_t>(sign | 0x7c00);  // 65520 and more: infinity
  if (magnitude >= 0x38800000) {
    const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000) >> 13));
  }
  // Subnormal: adding 0.5 lets the float unit round at the right place.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000));
}

KOLO_HOST_DEVICE inline float float_of_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1f;
  const std::uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
  return sign == 0 ? subnormal : -subnormal;
}

/// To nearest even; a NaN stays one.
KOLO_HOST_DEVICE inline std::uint16_t bfloat16_bits(float value) {
  const auto f = std::bit_cast<std::uint32_t>(value);
  const bool nan = (f & 0x7fffffff) > 0x7f800000;
  return static_cast<std::uint16_t>(nan ? (f >> 16 | 0x40) : (f + 0x7fff + (f >> 16 & 1)) >> 16);
}

KOLO_HOST_DEVICE inline float float_of_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace kolo::detail
