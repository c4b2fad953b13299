// Whether numbers are numbers: what dynamic loss scaling asks of all gradients of a step.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// bool, a scalar: true if no element of any of `xs` (f32 f64 f16 bf16, of any shapes, at least one) is NaN
/// or infinite; true of no element.
Output all_finite(const Scope& s, const Outputs& xs);

}  // namespace kolo
