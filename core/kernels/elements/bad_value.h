// What a kernel that cannot throw tells of a value that it cannot take.
#pragma once

#include <cstdint>

#include <kolo/core/kernels/elements/host_device.h>

namespace kolo::elements {

/// The first bad value, in the order of the elements, whichever thread finds it first. In memory of the host
/// that the GPU writes to: the host reads it when the work is done, and clears it.
struct BadValue {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  // Each with the value's place in its upper half, so that both halves stay together.
  std::uint64_t low = kNone;
  std::uint64_t high = kNone;

  /// Both halves are of one value.
  bool is_found() const { return low != kNone && low >> 32 == high >> 32; }
  std::int64_t place() const { return static_cast<std::int64_t>(low >> 32); }
  std::int64_t value() const { return static_cast<std::int64_t>(high << 32 | (low & 0xffffffff)); }
};

KOLO_HOST_DEVICE inline void note_smaller(std::uint64_t* word, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  // Most of very many bad values read only: an atomic goes to the host's memory for each of them.
  if (value < *static_cast<volatile std::uint64_t*>(word))
    atomicMin(reinterpret_cast<unsigned long long*>(word), static_cast<unsigned long long>(value));
#else
  if (value < *word) __atomic_store_n(word, value, __ATOMIC_RELAXED);
#endif
}

/// place: below 2³² − 1; a later one counts as that.
KOLO_HOST_DEVICE inline void note_bad_value(BadValue* bad, std::int64_t place, std::int64_t value) {
  constexpr std::int64_t last = 0xfffffffe;
  const std::uint64_t upper = static_cast<std::uint64_t>(place < last ? place : last) << 32;
  const auto bits = static_cast<std::uint64_t>(value);
  note_smaller(&bad->low, upper | (bits & 0xffffffff));
  note_smaller(&bad->high, upper | bits >> 32);
}

}  // namespace kolo::elements
