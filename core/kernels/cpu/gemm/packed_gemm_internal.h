// How packed_gemm.cc cuts a product of a given shape, whatever the instruction set.
#pragma once

#include <algorithm>
#include <cstdint>

#include <kolo/core/kernels/cpu/gemm/packed_gemm.h>

namespace kolo::detail {

// Terms that a tile adds up before it goes to memory: its rows of a stay in the nearest cache.
constexpr std::int64_t kDepth = 256;
// Of b are packed at a time: at most so many columns, and in all 512 KiB, which stay in the second nearest
// cache.
constexpr std::int64_t kMostCols = 512, kPackedFloats = 128 * 1024;
// Between rows of a, packed: no power of two, or they would displace one another from the cache.
constexpr std::int64_t kRowStride = kDepth + 16;
constexpr std::int64_t kMostTileRows = 14;
constexpr std::int64_t kRowsFloats = (kMostTileRows * kRowStride + 15) / 16 * 16;

// Rows of b, packed at a time.
inline std::int64_t packed_depth(const PackedGemm& shape) {
  const std::int64_t most = kPackedFloats / std::min(shape.cols, kMostCols);
  return std::min(shape.inner, most / kDepth * kDepth);
}

}  // namespace kolo::detail
