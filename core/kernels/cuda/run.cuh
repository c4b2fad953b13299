// How a piece of work is spread over a GPU. A .cu file that starts its kernels by these four functions alone
// is plain C++: the tests compile it for the host, where they have functions of these names, in place of
// this.
//
// A Work holds what it works on, and names it: operands(visit) calls visit(pointer, elements) for each piece
// of device memory, with a reference to the pointer.
#pragma once

/// Before a loop over a small array, which then stays in registers.
#if defined(__CUDA_ARCH__)
#define KOLO_DEVICE_UNROLL _Pragma("unroll")
#else
#define KOLO_DEVICE_UNROLL
#endif

#if defined(__CUDACC__)
#include <kolo/core/kernels/cuda/warps.cuh>

namespace kolo::cuda {

/// The 32 threads of a warp, as work for a row sees them: each takes the elements lane(), lane() + lanes(), …
class Warp {
 public:
  KOLO_HOST_DEVICE int lane() const {
#if defined(__CUDA_ARCH__)
    return cuda::lane();
#else
    return 0;
#endif
  }
  KOLO_HOST_DEVICE static constexpr int lanes() { return kWarp; }
  /// What the lanes' values fold to, for each of them.
  template <typename Fold, typename A>
  KOLO_HOST_DEVICE A fold(A value) const {
#if defined(__CUDA_ARCH__)
    return fold_warp<Fold>(value);
#else
    return value;
#endif
  }
};

/// The warps of a block, of which every lane has a unit of its own: each warp takes the elements lane(),
/// lane() + lanes(), … of its lanes' units.
class Strip {
 public:
  KOLO_HOST_DEVICE int lane() const {
#if defined(__CUDA_ARCH__)
    return static_cast<int>(threadIdx.x / kWarp);
#else
    return 0;
#endif
  }
  KOLO_HOST_DEVICE static constexpr int lanes() { return kWarpsPerBlock; }
  /// For lane 0 what the lanes' values fold to, in their order. Once in a work.
  template <typename Fold, typename A>
  KOLO_HOST_DEVICE A fold(A value) const {
#if defined(__CUDA_ARCH__)
    __shared__ A by_warp[kWarpsPerBlock][kWarp];
    by_warp[lane()][cuda::lane()] = value;
    __syncthreads();
    if (lane() == 0)
      for (int other = 1; other < kWarpsPerBlock; ++other)
        value = Fold::join(value, by_warp[other][cuda::lane()]);
#endif
    return value;
  }
};

/// The threads of a block.
class Block {
 public:
  KOLO_HOST_DEVICE int lane() const {
#if defined(__CUDA_ARCH__)
    return static_cast<int>(threadIdx.x);
#else
    return 0;
#endif
  }
  KOLO_HOST_DEVICE static constexpr int lanes() { return kThreads; }
  /// What the lanes' values fold to, for each of them. All threads call it.
  template <typename Fold, typename A>
  KOLO_HOST_DEVICE A fold(A value) const {
#if defined(__CUDA_ARCH__)
    __shared__ A by_warp[kWarpsPerBlock];
    value = fold_warp<Fold>(value);
    __syncthreads();  // until all have read what the last fold left
    if (cuda::lane() == 0) by_warp[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = by_warp[0];
    for (int other = 1; other < kWarpsPerBlock; ++other) value = Fold::join(value, by_warp[other]);
#endif
    return value;
  }
};

template <typename Work>
__global__ __launch_bounds__(kThreads) void each_kernel(const __grid_constant__ Work work,
                                                        std::int64_t elements) {
  for_each_element(elements, [&](std::int64_t i) { work(i); });
}

template <typename Work>
__global__ __launch_bounds__(kThreads) void rows_kernel(const __grid_constant__ Work work,
                                                        std::int64_t rows) {
  const std::int64_t row = warp_unit();
  if (row < rows) work(Warp(), row);
}

template <typename Work>
__global__ __launch_bounds__(kThreads) void columns_kernel(const __grid_constant__ Work work,
                                                           std::int64_t columns, std::int64_t parts) {
  const auto [strip, part] = divide(blockIdx.x, parts);
  const std::int64_t column = strip * kWarp + lane();
  // Lanes behind the last column do its work again, since all threads of a block fold: they write the same.
  work(Strip(), (column < columns ? column : columns - 1) * parts + part);
}

template <typename Work>
__global__ __launch_bounds__(kThreads) void blocks_kernel(const __grid_constant__ Work work) {
  work(Block(), blockIdx.x);
}

/// work(i) for each i below `elements`, in any order.
template <typename Work>
cudaError_t run_each(const char* /*name*/, cudaStream_t stream, std::int64_t elements, const Work& work) {
  static_assert(sizeof(Work) + sizeof elements <= kMostParameterBytes);
  if (elements == 0) return cudaSuccess;  // a grid of no blocks is an error
  each_kernel<<<blocks_for(elements), kThreads, 0, stream>>>(work, elements);
  return launched();
}

/// work(team, row) for each row below `rows`, in any order, by teams that are a warp each.
template <typename Work>
cudaError_t run_rows(const char* /*name*/, cudaStream_t stream, std::int64_t rows, const Work& work) {
  static_assert(sizeof(Work) + sizeof rows <= kMostParameterBytes);
  if (rows == 0) return cudaSuccess;
  rows_kernel<<<blocks_for_warps(rows), kThreads, 0, stream>>>(work, rows);
  return launched();
}

/// work(team, column · parts + part) for each column and each of its parts, where neighbouring columns lie in
/// neighbouring memory.
template <typename Work>
cudaError_t run_columns(const char* /*name*/, cudaStream_t stream, std::int64_t columns, std::int64_t parts,
                        const Work& work) {
  static_assert(sizeof(Work) + 2 * sizeof columns <= kMostParameterBytes);
  if (columns * parts == 0) return cudaSuccess;
  const std::int64_t strips = (columns + kWarp - 1) / kWarp;
  columns_kernel<<<static_cast<unsigned>(strips * parts), kThreads, 0, stream>>>(work, columns, parts);
  return launched();
}

/// work(team, unit) for each unit below `units`, in any order, by teams that are a block each.
template <typename Work>
cudaError_t run_blocks(const char* /*name*/, cudaStream_t stream, std::int64_t units, const Work& work) {
  static_assert(sizeof(Work) <= kMostParameterBytes);
  if (units == 0) return cudaSuccess;
  blocks_kernel<<<static_cast<unsigned>(units), kThreads, 0, stream>>>(work);
  return launched();
}

}  // namespace kolo::cuda
#endif
