// An orthonormal basis of what the columns of a matrix span.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// x [n, r], n ≥ r, f32 or f64 → [n, r] with orthonormal columns, by Gram–Schmidt, twice: column j is column
/// j of x without what lies along the columns before it. A column of which nothing is left, a zero one too,
/// becomes a direction that the columns before it lack. Computed in double by one thread. NaN where x is not
/// finite. Has no gradient. Throws InvalidArgumentError for other shapes.
Output orthogonalize(const Scope& s, Output x);

}  // namespace kolo
