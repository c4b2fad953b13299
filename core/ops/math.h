// Numbers, element by element: arithmetic, mathematical functions, rounding, comparisons, other types. Two
// operands have one type and are broadcast by NumPy's rule.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

// Arithmetic.

/// f32 f64 i32 i64. Throw InvalidArgumentError `Incompatible shapes: [2,3] vs. [4]`.
Output add(const Scope& s, Output a, Output b);
Output sub(const Scope& s, Output a, Output b);
Output mul(const Scope& s, Output a, Output b);
/// Whole numbers: the quotient without its fraction; InvalidArgumentError `Integer division by zero` when it
/// runs.
Output div(const Scope& s, Output a, Output b);
/// A NaN gives NaN. Where both are equal, the gradient goes to `a`.
Output maximum(const Scope& s, Output a, Output b);
Output minimum(const Scope& s, Output a, Output b);
/// f32 f64. aᵇ; where a ≤ 0 no gradient flows to b.
Output pow(const Scope& s, Output a, Output b);
/// The sum of tensors of one shape, at least one.
Output add_n(const Scope& s, const Outputs& xs);

/// f32 f64 i32 i64.
Output neg(const Scope& s, Output x);
Output abs(const Scope& s, Output x);
/// −1, 0 or 1.
Output sign(const Scope& s, Output x);
Output square(const Scope& s, Output x);
/// max(x, 0); its gradient at 0 is 0.
Output relu(const Scope& s, Output x);

/// f32 f64. f32: exp, tanh and sigmoid to 4 units in the last place, the others correctly rounded or as the C
/// library has them.
Output sqrt(const Scope& s, Output x);
/// 1 / √x.
Output rsqrt(const Scope& s, Output x);
Output exp(const Scope& s, Output x);
Output log(const Scope& s, Output x);
Output tanh(const Scope& s, Output x);
/// 1 / (1 + e⁻ˣ).
Output sigmoid(const Scope& s, Output x);

// Comparisons, logic on their results, and choosing by them. No gradient flows through a comparison.

/// Element by element, broadcast by NumPy's rule; the result is bool. Any numeric type but f16 and bf16, and
/// bool.
Output equal(const Scope& s, Output a, Output b);
Output not_equal(const Scope& s, Output a, Output b);
Output less(const Scope& s, Output a, Output b);
Output less_equal(const Scope& s, Output a, Output b);
Output greater(const Scope& s, Output a, Output b);
Output greater_equal(const Scope& s, Output a, Output b);

/// bool.
Output logical_and(const Scope& s, Output a, Output b);
Output logical_or(const Scope& s, Output a, Output b);
Output logical_not(const Scope& s, Output x);

/// f32 f64; bool.
Output is_nan(const Scope& s, Output x);
Output is_inf(const Scope& s, Output x);
Output is_finite(const Scope& s, Output x);

/// a where `condition` (bool), else b. a and b have one type (not string); all three are broadcast by NumPy's
/// rule.
Output select(const Scope& s, Output condition, Output a, Output b);
/// The same, under NumPy's name.
Output where(const Scope& s, Output condition, Output a, Output b);

// Mathematical functions beyond arithmetic, element by element.

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

// Real numbers to whole ones, and division with a rounded quotient. Element by element; no gradient flows
// through what is rounded.

/// f32 f64.
Output floor(const Scope& s, Output x);
Output ceil(const Scope& s, Output x);
/// To the nearest whole number; what lies half-way goes to the even one.
Output round(const Scope& s, Output x);

/// f32 f64 i32 i64, broadcast by NumPy's rule. The quotient rounded down, and what remains, which has the
/// sign of b: −7 = −4 · 2 + 1. Whole numbers: InvalidArgumentError `Integer division by zero` when it runs.
Output floordiv(const Scope& s, Output a, Output b);
/// A gradient flows: 1 to a, −floordiv(a, b) to b.
Output mod(const Scope& s, Output a, Output b);

// Another element type.

/// Between all types but string. A float becomes the whole number towards 0; beyond that type's range the
/// nearest it has, NaN 0. Whole numbers wrap around. bool: 0 or 1; everything but 0 is true. A gradient flows
/// between floating point types. x itself if it has the type already.
Output cast(const Scope& s, Output x, DType dtype);

/// `dy` summed to the shape of `like`, from which it was broadcast: how the gradient of a broadcast operand
/// is made.
Output sum_like(const Scope& s, Output dy, Output like);

}  // namespace kolo
