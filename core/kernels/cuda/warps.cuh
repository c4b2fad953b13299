// Work that the 32 threads of a warp do together.
#pragma once

#include <cstdint>
#include <type_traits>

#include <kolo/core/kernels/cuda/grid.cuh>

namespace kolo::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kWarpsPerBlock = kThreads / kWarp;

/// Blocks for one warp a unit.
inline unsigned blocks_for_warps(std::int64_t units) {
  return static_cast<unsigned>((units + kWarpsPerBlock - 1) / kWarpsPerBlock);
}

/// The unit of this thread's warp; beyond the last one in the last block.
__device__ inline std::int64_t warp_unit() {
  return std::int64_t{kWarpsPerBlock} * blockIdx.x + threadIdx.x / kWarp;
}
__device__ inline int lane() { return static_cast<int>(threadIdx.x % kWarp); }

/// What the warp's values fold to, in one order on every GPU. Each thread gets it: both partners of an
/// exchange join the same two values. Of two largest that are zeros or NaN they may keep another one each.
template <typename Fold, typename A>
__device__ A fold_warp(A value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    A other;
    if constexpr (std::is_same_v<A, bool>) other = __shfl_xor_sync(~0u, int{value}, distance) != 0;
    else other = __shfl_xor_sync(~0u, value, distance);
    value = Fold::join(value, other);
  }
  return value;
}

}  // namespace kolo::cuda
