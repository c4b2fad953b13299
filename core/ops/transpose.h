// Dimensions in another order.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// Dimension i of the result is dimension perm[i] of x; no perm: all dimensions reversed, which needs a known
/// rank. Any type but string. Throws InvalidArgumentError if `perm` is no permutation of x's dimensions.
Output transpose(const Scope& s, Output x, std::vector<std::int64_t> perm = {});

}  // namespace kolo
