// Numbers that lie one behind the other, read and written at once: a warp that reads 16 bytes a thread has
// four times as much under way as one that reads 4, and needs a quarter of the instructions.
#pragma once

#include <cstdint>
#include <initializer_list>

#include <kolo/core/kernels/elements/host_device.h>

namespace kolo::cuda {

/// In memory they begin at a multiple of their size.
template <int N>
struct alignas(N * sizeof(float)) Numbers {
  float at[N];
};

template <int N>
KOLO_HOST_DEVICE Numbers<N> read_numbers(const float* from) {
  return *reinterpret_cast<const Numbers<N>*>(from);
}
template <int N>
KOLO_HOST_DEVICE void write_numbers(const Numbers<N>& numbers, float* to) {
  *reinterpret_cast<Numbers<N>*>(to) = numbers;
}

/// Whether rows of `width` numbers can be read four at a time: each row of each of the places, of which some
/// may be nullptr, begins at a multiple of four.
inline bool are_fours(std::int64_t width, std::initializer_list<const void*> places) {
  if (width % 4 != 0) return false;
  for (const void* const place : places)
    if (reinterpret_cast<std::uintptr_t>(place) % alignof(Numbers<4>) != 0) return false;
  return true;
}

}  // namespace kolo::cuda
