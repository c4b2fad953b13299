// The order in which the matrix products of our own read what they load by vectors: panels of two vectors'
// columns, one term behind the other.
// No #pragma once: foreach_target.h includes the files that include this one several times.
#if defined(KOLO_GEMM_PANELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KOLO_GEMM_PANELS_INL_H
#undef KOLO_GEMM_PANELS_INL_H
#else
#define KOLO_GEMM_PANELS_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/highway.h>

#include <kolo/core/kernels/cpu/gemm/register_tile-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

constexpr std::int64_t kTileCols = 2 * kLanes;

#ifndef KOLO_UNROLL
#define KOLO_UNROLL _Pragma("GCC unroll 16")
#endif

// Where a tile goes: rows `stride` apart, which it replaces or is added to.
struct Target {
  float* c;
  std::int64_t stride;
  bool add;
};

template <int kRows>
HWY_INLINE void store_tile(const V (&sums)[kRows][2], const Target& to) {
  const Floats d;
  KOLO_UNROLL
  for (int r = 0; r < kRows; ++r) {
    float* const row = to.c + r * to.stride;
    KOLO_UNROLL
    for (int half = 0; half < 2; ++half) {
      V sum = sums[r][half];
      if (to.add) sum = hn::Add(sum, hn::LoadU(d, row + half * kLanes));
      hn::StoreU(sum, d, row + half * kLanes);
    }
  }
}

// Columns that lie in memory as rows, `stride` apart → panels [cols / kTileCols, depth, kTileCols], by way of
// a piece in the nearest cache.
inline void pack_transposed_cols(const float* b, std::int64_t stride, std::int64_t depth, std::int64_t cols,
                                 float* panels) {
  constexpr std::int64_t kPiece = 64, kPieceStride = kPiece + 16;
  const Floats d;
  const hn::RebindToSigned<Floats> integers;
  HWY_ALIGN float piece[kTileCols * kPieceStride];
  const auto column =
      hn::Mul(hn::Iota(integers, 0), hn::Set(integers, static_cast<std::int32_t>(kPieceStride)));
  for (std::int64_t j = 0; j < cols; j += kTileCols)
    for (std::int64_t first = 0; first < depth; first += kPiece) {
      const std::int64_t count = std::min(kPiece, depth - first);
      for (std::int64_t i = 0; i < kTileCols; ++i)
        std::copy_n(b + (j + i) * stride + first, count, piece + i * kPieceStride);
      float* to = panels + j * depth + first * kTileCols;
      for (std::int64_t k = 0; k < count; ++k, to += kTileCols) {
        hn::Store(hn::GatherIndex(d, piece + k, column), d, to);
        hn::Store(hn::GatherIndex(d, piece + kLanes * kPieceStride + k, column), d, to + kLanes);
      }
    }
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
