// Kernels that bring elements to other places. Elements have 1, 2, 4 or 8 bytes. See launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>
#include <kolo/core/kernels/elements/bad_value.h>

namespace kolo::cuda {

using elements::BadValue;

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

/// Row numbers of a tensor [outer, rows, inner]; what is not in [0, rows) is noted in `bad`, which may not be
/// null, and counts as no row.
struct Rows {
  std::int64_t outer;
  std::int64_t rows;
  std::int64_t inner;
  const void* indices;  // i32 or i64
  ElementType index_type;
  std::int64_t count;
  BadValue* bad;
};

/// y [outer, count, inner] are the named rows of x [outer, rows, inner]; 0 where there is none.
struct GatherArguments {
  int bytes_per_element;
  const void* x;
  void* y;
  Rows rows;
};
cudaError_t launch_gather(cudaStream_t stream, const GatherArguments& arguments);

/// What becomes of a row of y [outer, rows, inner] for each row of x [outer, count, inner] that has its
/// number, in their order: they are all added to zeros, added, subtracted, or the last one stays.
enum class Scatter { sum, add, sub, update };
struct ScatterArguments {
  Scatter scatter;
  int bytes_per_element;  // update; the others are of f32
  const void* x;
  void* y;
  Rows rows;
};
cudaError_t launch_scatter(cudaStream_t stream, const ScatterArguments& arguments);

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
