// How the matrix products and convolutions of our own cut a dimension into parts.
#pragma once

#include <cstdint>

namespace kolo::detail {

/// Part `n` of `parts` that are as equal as can be.
struct Part {
  Part(std::int64_t size, std::int64_t n, std::int64_t parts)
      : first(size * n / parts), count(size * (n + 1) / parts - first) {}
  std::int64_t end() const { return first + count; }
  std::int64_t first, count;
};

/// The fewest parts of at most `most`.
inline std::int64_t parts_of(std::int64_t size, std::int64_t most) { return (size + most - 1) / most; }

}  // namespace kolo::detail
