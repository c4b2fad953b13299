#include <kolo/core/kernels/cuda/launch_matmul.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../launches.h"
#include "../products.h"

namespace kolo::cuda {
namespace {

std::vector<float> transposed(const float* matrix, std::int64_t rows, std::int64_t cols) {
  std::vector<float> to(static_cast<std::size_t>(rows * cols));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t col = 0; col < cols; ++col)
      to[static_cast<std::size_t>(col * rows + row)] = matrix[row * cols + col];
  return to;
}

}  // namespace

cudaError_t launch_matmul(cudaStream_t stream, const MatmulArguments& arguments) {
  const auto [a, b, c, batch, rows, inner, cols, transpose_a, transpose_b] = arguments;
  if (batch * rows * cols == 0) return cudaSuccess;
  const float* const all_a = fake_cuda::device_read<float>(a, batch * rows * inner);
  const float* const all_b = fake_cuda::device_read<float>(b, batch * inner * cols);
  float* const all_c = fake_cuda::device_write<float>(c, batch * rows * cols);
  return fake_cuda::launch("matmul", stream, [=, shape = arguments] {
    const std::int64_t in_a = shape.rows * shape.inner, in_b = shape.inner * shape.cols;
    for (std::int64_t n = 0; n < shape.batch; ++n) {
      std::vector<float> copy;
      if (shape.transpose_a) copy = transposed(all_a + n * in_a, shape.inner, shape.rows);
      const fake_cuda::Lines x{shape.transpose_a ? copy.data() : all_a + n * in_a, shape.inner},
          y{all_b + n * in_b, shape.transpose_b ? shape.inner : shape.cols, shape.transpose_b};
      fake_cuda::multiply_rows(x, y, shape.rows, shape.inner, shape.cols,
                               [&](std::int64_t row, const float* sums) {
                                 std::copy_n(sums, shape.cols, all_c + (n * shape.rows + row) * shape.cols);
                               });
    }
  });
}

}  // namespace kolo::cuda
