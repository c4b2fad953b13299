// Kernels that fold a tensor along some of its dimensions. What is added to what follows from the shape
// alone, so results repeat bit for bit: partial results by blocks, then a tree over these; nothing atomic.
// See launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>

namespace kolo::cuda {

/// The functors of elements/folds.h.
enum class Fold { sum, product, maximum, minimum, any, all };

/// y[r] = the fold of x at kept(r) + folded(j) for all j below `count`, which may be 0; a sum is divided by
/// `divisor` before it is rounded. f32, i64; any and all: boolean.
struct ReduceArguments {
  Fold fold;
  ElementType type;
  const void* x;
  void* y;
  /// results · parts accumulators of 8 bytes; not read where parts is 1.
  void* partial;
  Walk<1> kept;
  Walk<1> folded;
  std::int64_t results;
  std::int64_t count;
  /// The folded elements are cut into so many runs of equal length, the last ones perhaps shorter or empty.
  int parts;
  /// Neighbouring elements of x belong to different results.
  bool by_columns;
  double divisor;  // 1, or the count for a mean, of f32 alone
};
cudaError_t launch_reduce(cudaStream_t stream, const ReduceArguments& arguments);

/// x [outer, count, inner] → y [outer, inner]: where along `count`, which is not 0, the first largest (or
/// smallest) element stands. NaN as on the CPU: a first one stays, a later one is passed over. f32, i64.
struct PositionArguments {
  bool smallest;
  ElementType type;
  const void* x;
  std::int64_t* y;
  std::int64_t outer;
  std::int64_t count;
  std::int64_t inner;
};
cudaError_t launch_position(cudaStream_t stream, const PositionArguments& arguments);

}  // namespace kolo::cuda
