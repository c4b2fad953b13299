// Numbers in order.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// start, start + delta, … as long as they are before `limit`: [n]. f32 f64 i32 i64; for whole numbers all
/// three must be whole, and less than 2⁵³ in magnitude. Nothing is before `limit` in the wrong direction:
/// [0]. Throws InvalidArgumentError for a delta of 0 and for what is not finite.
Output range(const Scope& s, DType dtype, double start, double limit, double delta = 1);

}  // namespace kolo
