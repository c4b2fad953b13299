// How far two tensors are apart. See launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>

namespace kolo::cuda {

inline constexpr int kDistanceParts = 1024;

/// Of elements p, p + kDistanceParts · 32, … and so on (a warp for each part p): squares[2p] is the sum of
/// (x − expected)², squares[2p + 1] of expected², each in the same order every time. A NaN makes them NaN.
struct DistanceArguments {
  const float* x;
  const float* expected;
  std::int64_t elements;
  double* squares;  // 2 · kDistanceParts
};
cudaError_t launch_distance(cudaStream_t stream, const DistanceArguments& arguments);

}  // namespace kolo::cuda
