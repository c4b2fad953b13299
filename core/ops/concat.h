// Joining tensors along a dimension, and cutting blocks out of them.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// At least one tensor, of one type (not string) and equal but for dimension `axis`; −1 is the last.
/// Throws InvalidArgumentError naming the shapes that do not fit.
Output concat(const Scope& s, const Outputs& xs, int axis);
/// The block of `size` elements from `begin` in each dimension; a size of −1 is all that follows.
/// Throws InvalidArgumentError if the block does not lie within x.
Output slice(const Scope& s, Output x, std::vector<std::int64_t> begin, std::vector<std::int64_t> size);

}  // namespace kolo
