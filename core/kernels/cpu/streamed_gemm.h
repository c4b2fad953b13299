// Matrix products for one thread in which one matrix is so small that it stays in the second nearest cache,
// while the large one goes by once, from memory or to it: the layers of a network at a batch of 64 or 128.
// packed_gemm.h has the products of many rows.
#pragma once

#include <cstddef>
#include <cstdint>

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
  /// Of run()'s scratch memory, which must be aligned to 64 bytes.
  std::size_t scratch_bytes() const;
  /// The order of the sums depends on the shape and the instruction set alone. NaN and infinities go the way
  /// of sums of products.
  void run(const float* a, const float* b, float* c, float* scratch) const;
};

}  // namespace kolo::detail
