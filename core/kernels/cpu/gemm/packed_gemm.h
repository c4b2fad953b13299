// A matrix product for one thread that copies its operands, piece by piece, into the order in which the
// innermost loop reads them, and asks for the next piece of a in time (Goto & van de Geijn, "Anatomy of
// high-performance matrix multiplication", TOMS 34, 2008).
#pragma once

#include <cstddef>
#include <cstdint>

namespace kolo::detail {

/// c [rows, cols] = a [rows, inner] · op(b) [inner, cols], all row-major f32. transpose_b: b lies in memory
/// as [cols, inner].
struct PackedGemm {
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t cols;
  bool transpose_b;

  /// Whether run() takes the shape: the columns are a multiple of 32, the rows at least 256.
  bool fits() const { return rows >= 256 && inner > 0 && cols > 0 && cols % 32 == 0; }
  /// Of run()'s scratch memory, which must be aligned to 64 bytes.
  std::size_t scratch_bytes() const;
  /// The order of the sums depends on the shape and the instruction set alone. NaN and infinities go the way
  /// of sums of products.
  void run(const float* a, const float* b, float* c, float* scratch) const;
};

/// Whether the processor has the instruction set that this is written for, AVX-512. own_kernels.h says
/// whether it is faster than oneDNN there.
bool has_fast_packed_gemm();

}  // namespace kolo::detail
