// What dropout's kernels of all devices draw.
#pragma once

#include <cmath>
#include <cstdint>

#include <kolo/core/base/process.h>

namespace kolo::detail {

/// Ranks have samples of their own, and drop elements of their own: a mask that all share would be one draw
/// for the whole batch. Nothing of it is kept beside the position in the stream, so a training that is
/// restored with as many ranks goes on with the same masks. Rank 0 draws what one rank alone would.
inline std::uint64_t dropout_seed(std::uint64_t op_seed) {
  return op_seed ^ (static_cast<std::uint64_t>(process().rank) * 0x9E3779B97F4A7C15);
}

/// A word from here on keeps its element: 2³² · rate.
inline std::uint64_t first_kept_word(double rate) {
  return static_cast<std::uint64_t>(std::llround(std::ldexp(rate, 32)));
}

}  // namespace kolo::detail
