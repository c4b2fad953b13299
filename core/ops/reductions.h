// Folding tensors along dimensions or altogether: sums, means, extremes, running sums, lengths.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

// Folding tensors along dimensions: sums, means, extremes.

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

// Running sums.

/// exclusive: element i is the sum of those before it, without its own. reverse: the sums run from the end.
struct CumsumOptions {
  bool exclusive = false;
  bool reverse = false;
};

/// Element i along `axis` is the sum of the elements up to and with it; −1 is the last dimension. f32 f64 i32
/// i64; float sums are accumulated in double, the result does not depend on the number of threads. Throws
/// InvalidArgumentError if the axis is outside x.
Output cumsum(const Scope& s, Output x, int axis = 0, CumsumOptions options = {});

// The length of a list of tensors, seen as one vector.

/// √(Σ of all elements' squares), a scalar; f32 or f64, at least one tensor, of any shapes. Summed in double,
/// in an order that does not depend on the number of threads.
Output global_norm(const Scope& s, const Outputs& xs);

// Whether numbers are numbers: what dynamic loss scaling asks of all gradients of a step.

/// bool, a scalar: true if no element of any of `xs` (f32 f64 f16 bf16, of any shapes, at least one) is NaN
/// or infinite; true of no element.
Output all_finite(const Scope& s, const Outputs& xs);

}  // namespace kolo
