#include <kolo/core/kernels/cuda/launch_matmul.h>

#include "../launches.h"

namespace kolo::cuda {

cudaError_t launch_matmul(cudaStream_t stream, const MatmulArguments& arguments) {
  const auto [a, b, c, batch, rows, inner, cols, transpose_a, transpose_b] = arguments;
  if (batch * rows * cols == 0) return cudaSuccess;
  const float* const all_a = fake_cuda::device_read<float>(a, batch * rows * inner);
  const float* const all_b = fake_cuda::device_read<float>(b, batch * inner * cols);
  float* const all_c = fake_cuda::device_write<float>(c, batch * rows * cols);
  // Of the operands: how far apart rows and columns of the product lie.
  const std::int64_t a_row = transpose_a ? 1 : inner, a_inner = transpose_a ? rows : 1;
  const std::int64_t b_inner = transpose_b ? 1 : cols, b_col = transpose_b ? inner : 1;
  return fake_cuda::launch("matmul", stream, [=, batch = batch, rows = rows, inner = inner, cols = cols] {
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t col = 0; col < cols; ++col) {
          const float* const x = all_a + n * rows * inner + row * a_row;
          const float* const y = all_b + n * inner * cols + col * b_col;
          float sum = 0;
          for (std::int64_t k = 0; k < inner; ++k) sum += x[k * a_inner] * y[k * b_inner];
          all_c[(n * rows + row) * cols + col] = sum;
        }
  });
}

}  // namespace kolo::cuda
