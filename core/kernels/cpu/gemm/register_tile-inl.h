// How large a tile of results a core adds up in its registers, for the files that are compiled once for each
// instruction set.
// No #pragma once: foreach_target.h includes those files, and so this one, several times.
#if defined(KOLO_REGISTER_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KOLO_REGISTER_TILE_INL_H
#undef KOLO_REGISTER_TILE_INL_H
#else
#define KOLO_REGISTER_TILE_INL_H
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;

constexpr std::int64_t kLanes = hn::MaxLanes(Floats());
// Floats of a cache line.
constexpr std::int64_t kLine = 16;
// A tile's sums, rows of two vectors each, fill the registers but for two vectors that are multiplied and one
// factor.
constexpr int kTileRows = HWY_TARGET <= HWY_AVX3 ? 14 : 6;

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
