// The largest of many.
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo {

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

}  // namespace kolo
