// What training makes small. f32 and f64.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// Σ x² / 2, a scalar: weight decay. Summed in double.
Output l2_loss(const Scope& s, Output x);

/// Of each element: −z · log(sigmoid(x)) − (1 − z) · log(1 − sigmoid(x)), with logits x and labels z of one
/// shape; neither overflows. Gradients flow to both. Throws InvalidArgumentError `logits and labels must have
/// the same shape ([2,3] vs [3])`.
Output sigmoid_cross_entropy_with_logits(const Scope& s, Output logits, Output labels);

/// −Σ labels · log(softmax(logits)) along the last dimension: [N,classes] and [N,classes] → [N]. labels: a
/// distribution over the classes for each example. Throws as above.
Output softmax_cross_entropy_with_logits(const Scope& s, Output logits, Output labels);

/// The mean of (predictions − targets)² over all elements, a scalar. Throws InvalidArgumentError unless both
/// have one shape.
Output mean_squared_error(const Scope& s, Output predictions, Output targets);

/// The mean over all elements, a scalar, of e² / 2 where e = |predictions − targets| ≤ delta, and of
/// delta · (e − delta / 2) beyond. Throws InvalidArgumentError for other shapes, or unless delta > 0.
Output huber_loss(const Scope& s, Output predictions, Output targets, double delta = 1);

// The loss of a classifier.

/// −log(softmax(logits)[label]) of each example: logits [N,classes] (f32, f64), labels [N] (i32, i64) → [N].
/// Throws InvalidArgumentError for other numbers of dimensions or different N; a run throws it for a label
/// outside [0, classes): `Received a label value of 12 which is outside the valid range of [0, 10)`, with the
/// label's index.
Output sparse_softmax_cross_entropy_with_logits(const Scope& s, Output logits, Output labels);

/// The mean of the above over the batch, a scalar.
Output softmax_cross_entropy(const Scope& s, Output logits, Output labels);

namespace detail {

/// What a graph pass makes of the sparse cross entropy where one number scales its gradient, attribute
/// `scale`. Outputs: that gradient, which may take the logits' memory, and the loss.
inline constexpr char kScaledCrossEntropyOp[] = "ScaledSparseSoftmaxCrossEntropy";

}  // namespace detail

}  // namespace kolo
