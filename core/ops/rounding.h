// Real numbers to whole ones, and division with a rounded quotient. Element by element; no gradient flows
// through what is rounded.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

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

}  // namespace kolo
