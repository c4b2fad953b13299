// Rows of a tensor, chosen by their numbers.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// Along dimension `axis` the elements that `indices` (i32 or i64, any shape) name: of params [a, b, c] and
/// indices [n, m], axis 1, the result is [a, n, m, c]. Any type but string; −1 is the last axis. A number
/// outside the dimension: InvalidArgumentError `Index <i> at offset <o> in indices is out of range` when it
/// is run. The gradient along axis 0 is slices (indexed_slices.h): a step then touches the rows that it used.
Output gather(const Scope& s, Output params, Output indices, int axis = 0);

/// The rows of a table [words, …] that `ids` name: gather along axis 0.
Output embedding_lookup(const Scope& s, Output table, Output ids);

}  // namespace kolo
