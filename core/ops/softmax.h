// Numbers as probabilities.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// exp(x) / sum(exp(x)) over the last dimension; f32, f64. Throws InvalidArgumentError for a scalar.
Output softmax(const Scope& s, Output logits);

}  // namespace kolo
