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

/// a where `condition` (bool), else b. a and b have one shape and type (not string); `condition` is broadcast
/// to that shape.
Output select(const Scope& s, Output condition, Output a, Output b);

}  // namespace kolo
