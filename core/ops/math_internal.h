// The gradients of ops that broadcast their inputs against each other.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo::detail {

/// The gradient of input `i` of `op` from `dx`, which has the shape of the op's output: summed where the
/// input was repeated, or may have been.
Output summed_to_input(const Scope& s, Output dx, const Node& op, int i);

}  // namespace kolo::detail
