// The loss of a classifier.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// −log(softmax(logits)[label]) of each example: logits [N,classes] (f32, f64), labels [N] (i32, i64) → [N].
/// Throws InvalidArgumentError for other numbers of dimensions or different N; a run throws it for a label
/// outside [0, classes): `Received a label value of 12 which is outside the valid range of [0, 10)`, with the
/// label's index.
Output sparse_softmax_cross_entropy_with_logits(const Scope& s, Output logits, Output labels);

/// The mean of the above over the batch, a scalar.
Output softmax_cross_entropy(const Scope& s, Output logits, Output labels);

}  // namespace kolo
