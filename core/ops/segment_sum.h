// Sums of the rows of a tensor that belong together.
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// Row k of the result, [num_segments, …], is the sum of the rows of `rows` whose number in `segments` is k;
/// 0 where there is none. rows: f32 f64 i32 i64, [n, …]; segments: i32 or i64, [n], in any order. Rows are
/// added in their order, whatever the number of threads. A number outside [0, num_segments):
/// InvalidArgumentError `Index <i> at offset <o> in indices is out of range` when it is run.
Output unsorted_segment_sum(const Scope& s, Output rows, Output segments, std::int64_t num_segments);

}  // namespace kolo
