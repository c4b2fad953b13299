// The same elements in the same order under another shape: views, which cost nothing.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

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

}  // namespace kolo
