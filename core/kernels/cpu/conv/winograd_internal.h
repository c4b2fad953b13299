// How winograd.cc cuts a convolution of a given shape, whatever the instruction set.
#pragma once

#include <algorithm>
#include <cstdint>

#include <kolo/core/kernels/cpu/conv/winograd.h>
#include <kolo/core/kernels/cpu/gemm/gemm_parts.h>

namespace kolo::detail {

inline std::int64_t tiles_of(const WinogradConvolution& c) {
  return c.images * c.tiles_along(c.rows) * c.tiles_along(c.cols);
}

// The convolution that makes the images' gradient from the results': channels change places, and the window
// is turned round.
inline WinogradConvolution turned(const WinogradConvolution& c) {
  const auto axis = [&](const WinogradConvolution::Axis& a) {
    return WinogradConvolution::Axis{a.outputs, a.size, c.window - 1 - a.pad_before};
  };
  return {c.window, c.images, c.outs, c.channels, axis(c.rows), axis(c.cols)};
}

// So many tiles pass through all steps at a time: their values stay in the second nearest cache; where the
// windows' values do not, they are read for as many tiles as are worth it.
inline std::int64_t tiles_at_once(const WinogradConvolution& c) {
  constexpr std::int64_t kPoints = 36, kNearFloats = 192 * 1024, kNearWindows = 256 * 1024;
  const std::int64_t fewest = kPoints * c.channels * c.outs > kNearWindows ? 112 : 28;
  const std::int64_t most = std::max(fewest, kNearFloats / (kPoints * (c.channels + c.outs)));
  const std::int64_t all = tiles_of(c);
  constexpr std::int64_t kBand = 14;  // rows of a tile of block_tiles-inl.h, where vectors are longest
  return std::min(all, parts_of(parts_of(all, parts_of(all, most)), kBand) * kBand);
}

// Whether weight gradients are summed over all tiles before the next ones are begun: their sums are too many
// for the caches, the tiles' values are not. GFLOP/s of a core that does 195 to 236 (Xeon, family 6 model
// 167), sums in memory → at once: 512 channels, 32 tiles of 7 × 7 images 125 → 257; 64 of 14 × 14 225 → 300;
// 196 of 28 × 28 380 → 430; 256 channels, 128 tiles of 14 × 14: 355 → 377; 784 of 56 × 56: 490 → 235.
inline bool sums_at_once(const WinogradConvolution& c) {
  return c.channels * c.outs >= 256 * 256 && tiles_of(c) <= 256;
}

}  // namespace kolo::detail
