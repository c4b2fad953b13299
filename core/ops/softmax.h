// Shares of exponentials along one dimension.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// exp(logits) / Σ exp(logits) along `axis` (−1 the last), without overflow; f32, f64.
/// Throws InvalidArgumentError for a scalar, or an axis that logits do not have.
Output softmax(const Scope& s, Output logits, int axis = -1);
/// Its logarithm: logits − log Σ exp(logits).
Output log_softmax(const Scope& s, Output logits, int axis = -1);

}  // namespace kolo
