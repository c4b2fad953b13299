// Kernels that bring elements to other places. Elements have 1, 2, 4 or 8 bytes. See launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>

namespace kolo::cuda {

/// For each element of the walk through y and x: y = x. Strides may be negative: y and x are the addresses of
/// the first element.
struct MoveArguments {
  int bytes_per_element;
  void* y;
  const void* x;
  Walk<2> walk;
  std::int64_t elements;
};
cudaError_t launch_move(cudaStream_t stream, const MoveArguments& arguments);

/// y [outer, depth, inner] = indices[outer, inner] is the place along depth ? on : off. i32, i64, u8.
struct OneHotArguments {
  int bytes_per_element;
  const void* indices;
  ElementType index_type;
  void* y;
  std::uint64_t on_bits;
  std::uint64_t off_bits;
  std::int64_t outer;
  std::int64_t depth;
  std::int64_t inner;
};
cudaError_t launch_one_hot(cudaStream_t stream, const OneHotArguments& arguments);

}  // namespace kolo::cuda
