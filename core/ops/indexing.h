// Tensors and the numbers of their rows: rows by their numbers, numbers as vectors, the numbers of the
// largest.
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo {

// Rows of a tensor, chosen by their numbers.

/// Along dimension `axis` the elements that `indices` (i32 or i64, any shape) name: of params [a, b, c] and
/// indices [n, m], axis 1, the result is [a, n, m, c]. Any type but string; −1 is the last axis. A number
/// outside the dimension: InvalidArgumentError `Index <i> at offset <o> in indices is out of range` when it
/// is run. The gradient along axis 0 is slices (indexed_slices.h): a step then touches the rows that it used.
Output gather(const Scope& s, Output params, Output indices, int axis = 0);

/// The rows of a table [words, …] that `ids` name: gather along axis 0.
Output embedding_lookup(const Scope& s, Output table, Output ids);

// Numbers of classes as vectors.

/// on: at the position of the class; off: elsewhere. axis: the new dimension of `depth` elements; −1 is the
/// last.
struct OneHotOptions {
  double on = 1;
  double off = 0;
  int axis = -1;
  DType dtype = DType::f32;  // of the result; any but string
};

/// For each number in `indices` (i32 i64 u8, any shape) a vector of `depth` elements: `on` at that position,
/// else `off`. All are `off` for a number outside [0, depth). No gradient flows through it. Throws
/// InvalidArgumentError if the axis is outside the result or the depth negative.
Output one_hot(const Scope& s, Output indices, std::int64_t depth, OneHotOptions options = {});

// The largest of many.

/// What top_k makes.
struct TopK {
  Output values;   // […, k], largest first
  Output indices;  // i32, where they stand along the last dimension
};

/// The k largest along the last dimension of x (f32 f64 i32 i64), the first of equal ones first; a NaN is
/// larger than all numbers. The gradient of the values goes to where they stood. Throws InvalidArgumentError
/// `input must have at least k columns. Had 3, needed 4`, or if x is a scalar.
TopK top_k(const Scope& s, Output x, std::int64_t k = 1);

/// Whether fewer than k classes have a larger prediction than the target: bool [N]. predictions: f32 f64 [N,
/// classes], targets: i32 i64 [N]. False for a target outside the classes, and where a prediction is not
/// finite.
Output in_top_k(const Scope& s, Output predictions, Output targets, std::int64_t k);

// Sums of the rows of a tensor that belong together.

/// Row k of the result, [num_segments, …], is the sum of the rows of `rows` whose number in `segments` is k;
/// 0 where there is none. rows: f32 f64 i32 i64, [n, …]; segments: i32 or i64, [n], in any order. Rows are
/// added in their order, whatever the number of threads. A number outside [0, num_segments):
/// InvalidArgumentError `Index <i> at offset <o> in indices is out of range` when it is run.
Output unsorted_segment_sum(const Scope& s, Output rows, Output segments, std::int64_t num_segments);

// Numbers in order.

/// start, start + delta, … as long as they are before `limit`: [n]. f32 f64 i32 i64; for whole numbers all
/// three must be whole, and less than 2⁵³ in magnitude. Nothing is before `limit` in the wrong direction:
/// [0]. Throws InvalidArgumentError for a delta of 0 and for what is not finite.
Output range(const Scope& s, DType dtype, double start, double limit, double delta = 1);

namespace detail {

/// What a graph pass makes of a sum of slices (indexed_slices.h) and another tensor. Inputs: that tensor, f32
/// or f64 [rows, …], whose memory the result may take; indices [n]; values [n, …]. To each row that is named
/// the sum of its values is added, which are added up in their order, from 0.
inline constexpr char kAddRowsOp[] = "AddRows";

}  // namespace detail

}  // namespace kolo
