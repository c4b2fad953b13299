// Mathematical functions beyond arithmetic, element by element.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// f32 f64, as the C library has them.
Output reciprocal(const Scope& s, Output x);
/// log(1 + x) and eˣ − 1, exact near 0 too.
Output log1p(const Scope& s, Output x);
Output expm1(const Scope& s, Output x);
/// x in radians.
Output sin(const Scope& s, Output x);
Output cos(const Scope& s, Output x);
/// 2/√π · ∫₀ˣ e^(−t²) dt.
Output erf(const Scope& s, Output x);

/// (a − b)². f32 f64 i32 i64, broadcast by NumPy's rule.
Output squared_difference(const Scope& s, Output a, Output b);

/// x where it lies in [low, high], else the nearer of the two; a NaN stays. f32 f64 i32 i64; `low` and `high`
/// have x's type and are broadcast to its shape. Of slices (core/graph/indexed_slices.h) the values are
/// clipped; they stay slices. The gradient flows to x where it lies within, the limits included, else to the
/// limit.
Output clip_by_value(const Scope& s, Output x, Output low, Output high);
Output clip_by_value(const Scope& s, Output x, double low, double high);

}  // namespace kolo
