// Arithmetic on tensors, element by element. Two operands have one type and are broadcast by NumPy's rule.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

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

}  // namespace kolo
