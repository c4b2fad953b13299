// Elements as bits: what only moves them does not ask for their type, but for their size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <kolo/core/kernels/cpu/element_types.h>

namespace kolo::detail {

/// Calls body(TypeTag<Bits>()) with the unsigned type of `size` bytes: 1, 2, 4 or 8.
template <typename Body>
void with_bits(std::size_t size, const Body& body) {
  switch (size) {
    case 1: return body(TypeTag<std::uint8_t>());
    case 2: return body(TypeTag<std::uint16_t>());
    case 4: return body(TypeTag<std::uint32_t>());
    default: return body(TypeTag<std::uint64_t>());
  }
}

/// `value` as an element of `dtype`, which is as large as Bits, has it.
template <typename Bits>
Bits bits_of(double value, DType dtype) {
  Bits bits = 0;
  with_type(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) == sizeof(Bits)) {
      const T element = static_cast<T>(static_cast<Computed<T>>(value));
      std::memcpy(&bits, &element, sizeof(bits));
    }
  });
  return bits;
}

}  // namespace kolo::detail
