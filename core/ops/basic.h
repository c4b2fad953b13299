// Values, views and order: what every graph needs whatever it computes.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

// Values, fed or fixed, and views of them.

/// A value that is fed. Running it unfed: InvalidArgumentError `You must feed a value for placeholder tensor
/// '<name>' with dtype <t>`.
Output placeholder(const Scope& s, DType dtype, Shape shape = Shape::unknown_rank());
/// A fixed value, part of the graph.
Output constant(const Scope& s, Tensor value);
Output constant(const Scope& s, float value);
/// All elements are `value`, as the type has it; any type but string, `shape` fully known.
Output fill(const Scope& s, DType dtype, Shape shape, double value);
Output zeros(const Scope& s, DType dtype, Shape shape);
Output ones(const Scope& s, DType dtype, Shape shape);
Output zeros_like(const Scope& s, Output x);
Output ones_like(const Scope& s, Output x);
/// x itself, as a node of its own.
Output identity(const Scope& s, Output x);
/// x forward; no gradient flows back.
Output stop_gradient(const Scope& s, Output x);
/// Does nothing, after all of `before`.
Operation group(const Scope& s, const std::vector<Operation>& before);
Operation no_op(const Scope& s);

// A value that may be fed.

/// `input` where it is not fed. `shape`: what may be fed; dimensions of −1 are open. Throws
/// InvalidArgumentError if `input` itself does not fit it.
Output placeholder_with_default(const Scope& s, Output input, Shape shape);

}  // namespace kolo
