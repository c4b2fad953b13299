// The length of a list of tensors, seen as one vector.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// √(Σ of all elements' squares), a scalar; f32 or f64, at least one tensor, of any shapes. Summed in double,
/// in an order that does not depend on the number of threads.
Output global_norm(const Scope& s, const Outputs& xs);

}  // namespace kolo
