// The plain matrix product, for what cuBLASLt declines and to compare it with. See launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>

namespace kolo::cuda {

/// c [batch, rows, cols] = a [batch, rows, inner] · b [batch, inner, cols], row-major; a transposed operand
/// is stored with its last two dimensions exchanged. c is none of the operands. With inner 0, c is 0.
struct MatmulArguments {
  const float* a;
  const float* b;
  float* c;
  std::int64_t batch;
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t cols;
  bool transpose_a;
  bool transpose_b;
};
cudaError_t launch_matmul(cudaStream_t stream, const MatmulArguments& arguments);

}  // namespace kolo::cuda
