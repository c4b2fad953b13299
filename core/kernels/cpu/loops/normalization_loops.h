// The inner loops of normalization over contiguous elements, compiled once for each instruction set and
// chosen at run time. Sums are taken in the element's type over short pieces and in double over those.
#pragma once

#include <cstdint>

namespace kolo::detail {

/// T: float or double. An output may be an input.
template <typename T>
struct NormalizationLoops {
  /// Σ x
  double (*sum)(const T* x, std::int64_t count);
  /// Σ (x − center)²
  double (*squares)(const T* x, T center, std::int64_t count);
  /// y = (x − center) · factor + shift
  void (*affine)(const T* x, T center, T factor, T shift, T* y, std::int64_t count);
  /// Adds Σ dy to sums[0] and Σ dy · (x − center) to sums[1].
  void (*gradient_sums)(const T* dy, const T* x, T center, std::int64_t count, double* sums);
  /// dx = factor · (dy − a − b · (x − center))
  void (*gradient)(const T* dy, const T* x, T center, T factor, T a, T b, T* dx, std::int64_t count);

  // With a scale and an offset for each element of a row.
  /// y = (x − center) · factor · scale + offset
  void (*row)(const T* x, T center, T factor, const T* scale, const T* offset, T* y, std::int64_t count);
  /// Adds Σ dy · scale to sums[0] and Σ dy · scale · (x − center) to sums[1].
  void (*row_sums)(const T* dy, const T* x, const T* scale, T center, std::int64_t count, double* sums);
  /// dx = factor · (dy · scale − a − b · (x − center))
  void (*row_gradient)(const T* dy, const T* x, const T* scale, T center, T factor, T a, T b, T* dx,
                       std::int64_t count);
  /// of_dy += dy, of_product += dy · (x − center) · factor
  void (*add_row)(const T* dy, const T* x, T center, T factor, double* of_dy, double* of_product,
                  std::int64_t count);
};

/// For the processor this runs on.
template <typename T>
const NormalizationLoops<T>& normalization_loops();

}  // namespace kolo::detail
