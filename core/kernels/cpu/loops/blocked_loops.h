// The inner loops over images in blocked order (core/ops/blocked.h), compiled once for each instruction set
// and chosen at run time. Each takes one plane: `pixels` times the channels of one block. What belongs to
// channels points to their `block` elements. Computed with is float, whatever images are stored in; sums are
// taken in float over short pieces and in double over those.
#pragma once

#include <cstdint>

#include <kolo/core/tensor/dtype.h>

namespace kolo::detail {

/// The gradient of y in one plane: the sum of `first` and, unless null, `second`, of which counts what the
/// rectifier behind y has let through, if there was one. Where y > 0, unless y is null; or, unless `factor`
/// is null, where `affine` makes a number > 0 of x with that factor and this shift: y need not be there.
template <typename T>
struct BlockedGradient {
  const T* first;
  const T* second = nullptr;
  const T* y = nullptr;
  const float* factor = nullptr;  // of the channels, as `shift`
  const float* shift = nullptr;
};

/// T: float or BFloat16, of all images.
template <typename T>
struct BlockedLoops {
  /// sums = Σ (x − center), squares = Σ (x − center)²
  void (*moments)(const T* x, const float* center, std::int64_t pixels, std::int64_t block, double* sums,
                  double* squares);
  /// y = (x − center) · factor + shift + added, `added` unless null, rectified if `relu`; NaN stays NaN. y
  /// may be x or `added`.
  void (*affine)(const T* x, const float* center, const float* factor, const float* shift, const T* added,
                 bool relu, T* y, std::int64_t pixels, std::int64_t block);
  /// sums = Σ g, products = Σ g · (x − center); g is written to `kept` unless null.
  void (*gradient_sums)(const BlockedGradient<T>& g, const T* x, const float* center, T* kept,
                        std::int64_t pixels, std::int64_t block, double* sums, double* products);
  /// dx = factor · (g − a − b · (x − center)). dx may be `g.first`.
  void (*gradient)(const BlockedGradient<T>& g, const T* x, const float* center, const float* factor,
                   const float* a, const float* b, T* dx, std::int64_t pixels, std::int64_t block);
};

/// For the processor this runs on, and blocks of 8 or 16 channels.
const BlockedLoops<float>& blocked_loops(std::int64_t block);
/// For blocks of any number of channels, a multiple of 16.
template <typename T>
const BlockedLoops<T>& channels_last_loops();

}  // namespace kolo::detail
