// Element-wise work, spread over a grid.
#pragma once

#include <cstdint>

#include <kolo/core/kernels/cuda/launch.h>

namespace kolo::cuda {

inline constexpr int kThreads = 256;
// Enough for every multiprocessor of today's GPUs many times over; more blocks would only start and end.
inline constexpr std::int64_t kMaxBlocks = 8192;

inline int blocks_for(std::int64_t elements) {
  const std::int64_t blocks = (elements + kThreads - 1) / kThreads;
  return static_cast<int>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

/// Calls work(i) for each i in [0, elements), neighbours in neighbouring threads.
template <typename Work>
__device__ void for_each_element(std::int64_t elements, Work work) {
  const std::int64_t step = std::int64_t{kThreads} * gridDim.x;
  for (std::int64_t i = std::int64_t{kThreads} * blockIdx.x + threadIdx.x; i < elements; i += step) work(i);
}

struct Divided {
  std::int64_t quotient;
  std::int64_t rest;
};

/// Of numbers that are not negative. GPUs have no instruction for it; 64 bits cost several times 32.
__device__ inline Divided divide(std::int64_t number, std::int64_t by) {
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
__device__ Offsets<Operands> offsets_at(const Walk<Operands>& walk, std::int64_t i) {
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

}  // namespace kolo::cuda
