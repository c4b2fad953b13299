// Sums of gradients that are products of matrices with fewer rows than the gradient has: a batch's inputs and
// the gradients of its results, of several batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <kolo/core/kernels/cpu/gemm/streamed_gemm.h>

namespace kolo::detail {

/// A gradient xᵀ · dy [inputs, outputs]: x [rows, inputs], dy [rows, outputs], row-major f32.
struct GradientFactors {
  const float* x;
  const float* dy;
};

/// One thread at a time, as a kernel.
class ProductSum {
 public:
  /// Of each product.
  ProductSum(std::int64_t rows, std::int64_t inputs, std::int64_t outputs);

  /// Of run()'s scratch memory for as many factors, which must be aligned to 64 bytes.
  std::size_t scratch_bytes(int factors) const;
  /// Writes rows [first, first + count) of the sum over `factors`, one to three, to where they belong in
  /// `gradient`. On as many threads as a kernel may use.
  void run(std::span<const GradientFactors> factors, std::int64_t first, std::int64_t count, float* gradient,
           float* scratch) const;

 private:
  StreamedGemm streamed(std::int64_t count) const;
  bool is_streamed(std::int64_t count) const;

  std::int64_t rows_, inputs_, outputs_;
  bool may_stream_;
};

}  // namespace kolo::detail
