// Walks through operands, on the host; see kolo/core/kernels/cuda/launch.h.
#pragma once

#include <array>

#include <kolo/core/kernels/cuda/launch.h>

namespace kolo::fake_cuda {

/// How many elements an operand has, from the first to the last that the walk meets.
template <int Operands>
std::int64_t extent(const cuda::Walk<Operands>& walk, int operand) {
  std::int64_t last = 0;
  for (int axis = 0; axis < walk.rank; ++axis) last += (walk.dims[axis] - 1) * walk.strides[operand][axis];
  return last + 1;
}

/// Where the operands stand at element i.
template <int Operands>
std::array<std::int64_t, Operands> offsets(const cuda::Walk<Operands>& walk, std::int64_t i) {
  std::array<std::int64_t, Operands> at = {};
  for (int axis = walk.rank - 1; axis >= 0; --axis) {
    for (int k = 0; k < Operands; ++k)
      at[static_cast<std::size_t>(k)] += i % walk.dims[axis] * walk.strides[k][axis];
    i /= walk.dims[axis];
  }
  return at;
}

}  // namespace kolo::fake_cuda
