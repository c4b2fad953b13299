// Moving elements between a dense tensor and places that strides describe: slices, tiles, padding.
#pragma once

#include <cstddef>

#include <kolo/core/kernels/cpu/strided_index.h>

namespace kolo::detail {

/// to[i] = from[offset of i], i in row-major order of the index's dimensions; elements of `size` bytes.
void gather_strided(const StridedIndex<1>& index, std::size_t size, const std::byte* from, std::byte* to);
/// to[offset of i] = from[i]; no two offsets are the same.
void scatter_strided(const StridedIndex<1>& index, std::size_t size, const std::byte* from, std::byte* to);

}  // namespace kolo::detail
