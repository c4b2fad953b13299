// Folding tensors along dimensions: sums, means, extremes.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// axes: those that are folded, −1 the last; none given: all of them. keep_dims: they stay, with 1 element.
struct ReduceOptions {
  std::vector<std::int64_t> axes;
  bool keep_dims = false;
};

/// f32 f64 i32 i64, means f32 f64. Of no element: 0, 1 (product), NaN (mean), ∓∞ or the type's limits (max,
/// min). Float sums are accumulated in double; the result does not depend on the number of threads. Throw
/// InvalidArgumentError if an axis is outside the tensor or given twice.
Output reduce_sum(const Scope& s, Output x, ReduceOptions options = {});
Output reduce_mean(const Scope& s, Output x, ReduceOptions options = {});
/// A NaN gives NaN. The gradient is shared equally by all that are largest, as in TensorFlow.
Output reduce_max(const Scope& s, Output x, ReduceOptions options = {});
Output reduce_min(const Scope& s, Output x, ReduceOptions options = {});
Output reduce_prod(const Scope& s, Output x, ReduceOptions options = {});
/// log Σ eˣ without overflow. f32 f64.
Output reduce_logsumexp(const Scope& s, Output x, ReduceOptions options = {});
/// bool: whether one is true, or all are. Of no element: false, true.
Output reduce_any(const Scope& s, Output x, ReduceOptions options = {});
Output reduce_all(const Scope& s, Output x, ReduceOptions options = {});
/// The position of the largest or smallest element along `axis`, the first of several; i64, without that
/// dimension.
Output argmax(const Scope& s, Output x, int axis = -1);
Output argmin(const Scope& s, Output x, int axis = -1);

/// `dy` summed to the shape of `like`, from which it was broadcast: how the gradient of a broadcast operand
/// is made.
Output sum_like(const Scope& s, Output dy, Output like);

}  // namespace kolo
