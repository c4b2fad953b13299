// Matrix products for one thread in which one matrix is so small that it stays in the second nearest cache,
// while the large one goes by once, from memory or to it: the layers of a network at a batch of 64 or 128.
// packed_gemm.h has the products of many rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kolo::detail {

/// c [rows, cols] = op(a) [rows, inner] · op(b) [inner, cols], all row-major f32. transpose_a: a lies in
/// memory as [inner, rows]; transpose_b: b as [cols, inner].
struct StreamedGemm {
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t cols;
  bool transpose_a = false;
  bool transpose_b = false;

  /// Whether run() takes the shape; see streamed_gemm.cc.
  bool fits() const;
  /// Whether each result is a sum over more rows than a batch of a dense layer has, as the weights' gradients
  /// of a transformer's layers are: the class of its own kernel (own_kernels.h).
  bool adds_up_rows() const { return transpose_a && inner > 512; }
  /// Of run()'s scratch memory, which must be aligned to 64 bytes.
  std::size_t scratch_bytes() const;
  /// The order of the sums depends on the shape and the instruction set alone. NaN and infinities go the way
  /// of sums of products.
  void run(const float* a, const float* b, float* c, float* scratch) const;

  /// Of one of the products that are summed: a [inner, …], b [inner, cols].
  struct Factors {
    const float* a;
    const float* b;
  };
  /// Whether run_sum() takes the shape: of each of the products aᵀ · b.
  bool fits_sum() const;
  std::size_t scratch_bytes_of_sum(int factors) const;
  /// c = the sum of aᵀ · b over one to three factors. stride: from one row of an `a` to the next, of which
  /// the first `rows` elements are taken. Scratch as of run(), scratch_bytes_of_sum().
  void run_sum(std::span<const Factors> factors, std::int64_t stride, float* c, float* scratch) const;
};

}  // namespace kolo::detail
