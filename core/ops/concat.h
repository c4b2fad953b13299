// Joining tensors along a dimension, and cutting them apart.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// At least one tensor, of one type (not string) and equal but for dimension `axis`; −1 is the last.
/// Throws InvalidArgumentError naming the shapes that do not fit.
Output concat(const Scope& s, const Outputs& xs, int axis);
/// `parts` equal parts along dimension `axis`. Throws InvalidArgumentError if it cannot be divided so.
Outputs split(const Scope& s, Output x, int parts, int axis = 0);
/// Parts of these sizes, of which one may be −1: what the others leave. They must make up the dimension.
Outputs split_v(const Scope& s, Output x, std::vector<std::int64_t> sizes, int axis = 0);
/// Tensors of one type and shape, at least one, side by side along a new dimension, which becomes dimension
/// `axis`.
Output stack(const Scope& s, const Outputs& xs, int axis = 0);
/// The elements of dimension `axis`, each without it. Throws InvalidArgumentError unless that dimension is
/// known.
Outputs unstack(const Scope& s, Output x, int axis = 0);
/// The block of `size` elements from `begin` in each dimension; a size of −1 is all that follows.
/// Throws InvalidArgumentError if the block does not lie within x.
Output slice(const Scope& s, Output x, std::vector<std::int64_t> begin, std::vector<std::int64_t> size);

}  // namespace kolo
