// Another shape for the same elements: views, joining and cutting, dimensions in another order; and shapes as
// values.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

// The same elements in the same order under another shape: views, which cost nothing.

/// `shape` has as many elements as x; one dimension may be −1, which follows from the others.
/// Throws InvalidArgumentError `Cannot reshape a tensor with 6 elements to shape [4] (4 elements)`: when the
/// graph is built if the shape of x is known there, else when it is first run.
Output reshape(const Scope& s, Output x, Shape shape);
/// x with the shape of `like`.
Output reshape_like(const Scope& s, Output x, Output like);
/// A new dimension of 1 that becomes dimension `axis`; −1 puts it last.
Output expand_dims(const Scope& s, Output x, int axis);
/// Without the dimensions `axes`, which must be 1; none given: without all that are 1.
Output squeeze(const Scope& s, Output x, std::vector<std::int64_t> axes = {});

// Joining tensors along a dimension, and cutting them apart.

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

// Dimensions in another order.

/// Dimension i of the result is dimension perm[i] of x; no perm: all dimensions reversed, which needs a known
/// rank. Any type but string. Throws InvalidArgumentError if `perm` is no permutation of x's dimensions.
Output transpose(const Scope& s, Output x, std::vector<std::int64_t> perm = {});

// What is known of a tensor beside its elements, as tensors. No gradient flows through them.

/// x of any type. The dimensions of x, [rank]; out_type: i32 or i64. A number that i32 does not hold:
/// InvalidArgumentError when it runs.
Output shape_of(const Scope& s, Output x, DType out_type = DType::i32);
/// How many elements x has, a scalar; likewise.
Output size_of(const Scope& s, Output x, DType out_type = DType::i32);
/// How many dimensions x has, an i32 scalar.
Output rank_of(const Scope& s, Output x);

}  // namespace kolo
