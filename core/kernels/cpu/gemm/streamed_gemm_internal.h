// How streamed_gemm.cc goes over a product of a given shape, whatever the instruction set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <kolo/core/kernels/cpu/gemm/streamed_gemm.h>

namespace kolo::detail {

// What streams, and how the rest stays near:
// panels   b. All of a [rows, kDepth] is packed; of b one panel [kDepth, two vectors], by the tile that needs
//          it first, and all bands of a run over it while it is in the nearest cache.
// bands    c. All of b is packed, by the first band; of a one band at a time.
// columns  b, which is transposed. Its rows are the bands and aᵀ the panels: the result comes out transposed.
// turned   a, which is transposed: cᵀ = bᵀ · a by panels of a, and then cᵀ, which is near, is transposed.
enum class StreamedWay { none, panels, bands, columns, turned };

// Terms that a tile adds up before it goes to memory. 192 and 128 are slower (64 × 3136 × 1024: 126, 122 and
// 125 GFLOP/s for 256, 192 and 128; 128 × 784 × 1024: 150, 143, 140; aᵀ · b 256 × 2048 × 768: 163, 153, 148).
constexpr std::int64_t kDepth = 256;
// Of what stays near, at most: 512 KiB.
constexpr std::int64_t kNearFloats = 128 * 1024;
constexpr std::int64_t kMostTurned = 2 * kNearFloats;
constexpr std::int64_t kPanelCols = 32;  // of the widest vectors
constexpr std::int64_t kLeastTileRows = 6, kMostTileRows = 14;
// Of a packed band: a line for each term, or, by rows, less.
constexpr std::int64_t kBandFloats = kDepth * 16;
// What was measured to be faster (linalg.cc): rows and terms. Fewer rows than 64 make bands of unequal
// heights. a · bᵀ of 128 rows gains 3 to 7 % alone, and loses as much in a step of mlp; with 10 terms it
// takes twice the time of oneDNN's. aᵀ · b of 128 terms is as fast as oneDNN's.
struct SizeRange {
  std::int64_t least, most;
  bool has(std::int64_t n) const { return n >= least && n <= most; }
};
constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
constexpr SizeRange kPanelRows{64, 255}, kPanelTerms{128, kAny};
constexpr SizeRange kPanelRowsOfTransposed{64, 256}, kPanelTermsOfTransposed{kDepth + 1, kAny};
constexpr SizeRange kBandRows{64, kAny}, kBandTerms{1, 64};
constexpr SizeRange kColumnRows{64, 127}, kColumnTerms{128, kAny}, kColumnCols{64, kAny};

inline StreamedWay way_of(const StreamedGemm& shape) {
  const auto fits = [&](const SizeRange& rows, const SizeRange& terms) {
    return rows.has(shape.rows) && terms.has(shape.inner);
  };
  if (shape.transpose_b) {
    const bool is_near = shape.rows % kPanelCols == 0 && shape.rows * shape.inner <= kNearFloats;
    return !shape.transpose_a && is_near && fits(kColumnRows, kColumnTerms) && kColumnCols.has(shape.cols)
               ? StreamedWay::columns
               : StreamedWay::none;
  }
  if (shape.cols <= 0 || shape.cols % kPanelCols != 0) return StreamedWay::none;
  if (!shape.transpose_a) return fits(kPanelRows, kPanelTerms) ? StreamedWay::panels : StreamedWay::none;
  if (fits(kBandRows, kBandTerms)) return StreamedWay::bands;
  if (fits(kPanelRowsOfTransposed, kPanelTermsOfTransposed)) return StreamedWay::panels;
  const bool can_turn = shape.rows % kPanelCols == 0 && shape.rows * shape.cols <= kMostTurned &&
                        kPanelRowsOfTransposed.has(shape.cols) && kPanelTermsOfTransposed.has(shape.inner);
  return can_turn ? StreamedWay::turned : StreamedWay::none;
}

// cᵀ = bᵀ · a.
inline StreamedGemm turned(const StreamedGemm& shape) {
  return {shape.cols, shape.inner, shape.rows, true, false};
}

// Columns of b that are packed at a time, where bands go over them.
inline std::int64_t near_cols(const StreamedGemm& shape, std::int64_t terms) {
  return std::min(shape.cols, kNearFloats / terms / kPanelCols * kPanelCols);
}

inline std::int64_t floats_of_bands(const StreamedGemm& shape, int factors) {
  const std::int64_t terms = factors * shape.inner;
  return near_cols(shape, terms) * terms + terms * kBandFloats / kDepth;
}

}  // namespace kolo::detail
