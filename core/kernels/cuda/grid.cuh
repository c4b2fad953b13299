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

/// What the launch just before did; counts it.
inline cudaError_t launched() {
  count_launch();
  return cudaGetLastError();
}

/// Calls work(i) for each i in [0, elements), neighbours in neighbouring threads.
template <typename Work>
__device__ void for_each_element(std::int64_t elements, Work work) {
  const std::int64_t step = std::int64_t{kThreads} * gridDim.x;
  for (std::int64_t i = std::int64_t{kThreads} * blockIdx.x + threadIdx.x; i < elements; i += step) work(i);
}

using elements::divide;
using elements::Offsets;
using elements::offsets_at;

}  // namespace kolo::cuda
