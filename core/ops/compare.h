// Comparisons, logic on their results, and choosing by them. No gradient flows through a comparison.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

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

}  // namespace kolo
