// Tensors repeated along their dimensions.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// Dimension i of x `multiples[i]` times, one behind the other. Any type but string; the gradient is the sum
/// over the repetitions. Throws InvalidArgumentError unless there is one multiple ≥ 0 for each dimension.
Output tile(const Scope& s, Output x, std::vector<std::int64_t> multiples);

/// x repeated to `shape` by NumPy's rule; a −1 keeps x's own dimension. Any type but string.
/// Throws InvalidArgumentError if a dimension of x is neither 1 nor the one asked for.
Output broadcast_to(const Scope& s, Output x, Shape shape);

}  // namespace kolo
