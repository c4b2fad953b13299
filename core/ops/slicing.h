// Parts of tensors by their places, and tensors made larger: slices, padding, tiles.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

// Every n-th element of a tensor's dimensions, forwards or backwards.

/// Bit i of each is for entry i of begin, end and strides, as in TensorFlow.
struct StridedSliceMasks {
  std::int64_t begin = 0;        // begin[i] is ignored: from the first element, backwards from the last
  std::int64_t end = 0;          // end[i] is ignored: up to and with the last element, backwards the first
  std::int64_t ellipsis = 0;     // stands for all dimensions that no other entry is for; one at most
  std::int64_t new_axis = 0;     // a new dimension of 1
  std::int64_t shrink_axis = 0;  // the element begin[i] alone, without its dimension
};

/// The elements begin, begin + stride, … before `end`, in each dimension that has an entry, as NumPy's
/// x[b:e:s] has them: numbers below 0 count from the end, what lies outside is cut off. No strides: 1 for
/// each. Dimensions without entry stay whole. Any type but string. Throws InvalidArgumentError for a stride
/// of 0, for more entries than dimensions and `slice index 5 of dimension 0 out of bounds` for an element
/// that there is not.
Output strided_slice(const Scope& s, Output x, std::vector<std::int64_t> begin, std::vector<std::int64_t> end,
                     std::vector<std::int64_t> strides = {}, StridedSliceMasks masks = {});

/// Rows of x that one of `parts` replicas takes of a batch: `index`·step … with step = ⌊rows ÷ parts⌋, the
/// last one all that is left. Rows are dimension 0; any type but string. Throws InvalidArgumentError unless 0
/// ≤ index < parts and x has a dimension.
Output batch_slice(const Scope& s, Output x, std::int64_t index, std::int64_t parts);

/// x with the order of the elements along `axes` reversed; −1 is the last. Any type but string.
Output reverse(const Scope& s, Output x, std::vector<std::int64_t> axes);

// Tensors made larger at their edges.

/// x with `paddings[i]` = {before, after} more elements in dimension i, all of them `value`. Any type but
/// string. Throws InvalidArgumentError unless there is one pair, of numbers ≥ 0, for each dimension.
Output pad(const Scope& s, Output x, const std::vector<std::pair<std::int64_t, std::int64_t>>& paddings,
           double value = 0);

// Tensors repeated along their dimensions.

/// Dimension i of x `multiples[i]` times, one behind the other. Any type but string; the gradient is the sum
/// over the repetitions. Throws InvalidArgumentError unless there is one multiple ≥ 0 for each dimension.
Output tile(const Scope& s, Output x, std::vector<std::int64_t> multiples);

/// x repeated to `shape` by NumPy's rule; a −1 keeps x's own dimension. Any type but string.
/// Throws InvalidArgumentError if a dimension of x is neither 1 nor the one asked for.
Output broadcast_to(const Scope& s, Output x, Shape shape);

}  // namespace kolo
