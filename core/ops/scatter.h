// Rows of a variable, changed in place.
#pragma once

#include <kolo/core/ops/variable.h>

namespace kolo {

/// Row indices[i] of the variable takes updates[i]: added, subtracted or put in its place; the other rows
/// stay. indices: i32 or i64, any shape; updates: of the variable's type, the shape of indices and behind it
/// a row's. One after the other in the order of `indices`, so that a row that is listed twice takes both, and
/// of scatter_update the last. The result is the variable's new value. Throw InvalidArgumentError for shapes
/// that do not fit, and when run, before anything is changed, `Index <i> at offset <o> in indices is out of
/// range`.
Output scatter_add(const Scope& s, const Variable& v, Output indices, Output updates);
Output scatter_sub(const Scope& s, const Variable& v, Output indices, Output updates);
Output scatter_update(const Scope& s, const Variable& v, Output indices, Output updates);

}  // namespace kolo
