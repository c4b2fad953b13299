// The inner loops over images in blocked order (core/ops/blocked.h), compiled once for each instruction set
// and chosen at run time. Each takes one plane: `pixels` times the channels of one block. What belongs to
// channels points to their `block` elements. Sums are taken in float over short pieces and in double over
// those.
#pragma once

#include <cstdint>

namespace kolo::detail {

/// The gradient of y in one plane: the sum of `first` and, unless null, `second`, where y > 0 or y is null.
struct BlockedGradient {
  const float* first;
  const float* second = nullptr;
  const float* y = nullptr;
};

struct BlockedLoops {
  /// sums = Σ (x − center), squares = Σ (x − center)²
  void (*moments)(const float* x, const float* center, std::int64_t pixels, double* sums, double* squares);
  /// y = (x − center) · factor + shift + added, `added` unless null, rectified if `relu`; NaN stays NaN. y
  /// may be x or `added`.
  void (*affine)(const float* x, const float* center, const float* factor, const float* shift,
                 const float* added, bool relu, float* y, std::int64_t pixels);
  /// sums = Σ g, products = Σ g · (x − center); g is written to `kept` unless null.
  void (*gradient_sums)(const BlockedGradient& g, const float* x, const float* center, float* kept,
                        std::int64_t pixels, double* sums, double* products);
  /// dx = factor · (g − a − b · (x − center)). dx may be `g.first`.
  void (*gradient)(const BlockedGradient& g, const float* x, const float* center, const float* factor,
                   const float* a, const float* b, float* dx, std::int64_t pixels);
};

/// For the processor this runs on. block: 8 or 16.
const BlockedLoops& blocked_loops(std::int64_t block);

}  // namespace kolo::detail
