// What LARS and LAMB share: the step of a layer is measured by the length of its weights.
#pragma once

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/compare.h>
#include <kolo/core/ops/elementwise.h>
#include <kolo/core/ops/variable.h>

namespace kolo::detail {

/// False for biases and scales, which are short for other reasons than weights are.
inline bool adapts(const Variable& variable) { return variable.shape().rank() > 1; }

/// a / b for scalars, 1 where one of them is 0.
inline Output trust_ratio(const Scope& s, Output a, Output b) {
  const Output zero = zeros_like(s, a);
  const Output both = logical_and(s, greater(s, a, zero), greater(s, b, zero));
  return select(s, both, div(s, a, b), ones_like(s, a));
}

}  // namespace kolo::detail
