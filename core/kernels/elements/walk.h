// Where the elements of tensors stand, of which dimensions are repeated, folded away or exchanged.
#pragma once

#include <cstdint>

#include <kolo/core/kernels/elements/host_device.h>

namespace kolo::elements {

inline constexpr int kMaxDims = 8;

/// How `Operands` tensors are walked together: dimensions, outermost first, and for each the number of
/// elements by which each operand moves (0: it is repeated).
template <int Operands>
struct Walk {
  int rank = 0;  // 0: one element
  std::int64_t dims[kMaxDims] = {};
  std::int64_t strides[Operands][kMaxDims] = {};
};

struct Divided {
  std::int64_t quotient;
  std::int64_t rest;
};

/// Of numbers that are not negative. GPUs have no instruction for it; 64 bits cost several times 32.
KOLO_HOST_DEVICE inline Divided divide(std::int64_t number, std::int64_t by) {
  const std::int64_t quotient =
      ((number | by) >> 32) == 0
          ? static_cast<std::int64_t>(static_cast<std::uint32_t>(number) / static_cast<std::uint32_t>(by))
          : number / by;
  return {quotient, number - quotient * by};
}

template <int Operands>
struct Offsets {
  std::int64_t at[Operands];
};

/// Where the operands of a walk stand at its element i.
template <int Operands>
KOLO_HOST_DEVICE Offsets<Operands> offsets_at(const Walk<Operands>& walk, std::int64_t i) {
  Offsets<Operands> offsets = {};
  for (int axis = walk.rank - 1; axis > 0; --axis) {
    const auto [rest, place] = divide(i, walk.dims[axis]);
    for (int k = 0; k < Operands; ++k) offsets.at[k] += place * walk.strides[k][axis];
    i = rest;
  }
  if (walk.rank > 0)
    for (int k = 0; k < Operands; ++k) offsets.at[k] += i * walk.strides[k][0];
  return offsets;
}

/// How many elements an operand has, from the first to the last that the walk meets; strides not negative.
template <int Operands>
KOLO_HOST_DEVICE std::int64_t extent(const Walk<Operands>& walk, int operand) {
  std::int64_t last = 0;
  for (int axis = 0; axis < walk.rank; ++axis) last += (walk.dims[axis] - 1) * walk.strides[operand][axis];
  return last + 1;
}

}  // namespace kolo::elements
