// Rows sorted into several tensors by numbers that say where each belongs, and joined again. Any type but
// string; on CPUs.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// `parts` tensors: part k holds, in their order, the rows of x whose number in `partitions` is k.
/// partitions: i32 or i64, of the shape of x's first dimensions, each row of x being what lies behind them.
/// How many rows a part has only a step tells. A number outside [0, parts): InvalidArgumentError
/// `partitions[<o>] = <p> is not in [0, <parts>)` when it is run.
Outputs dynamic_partition(const Scope& s, Output x, Output partitions, int parts);

/// The rows of all xs in one tensor, whose row indices[k][i] is xs[k][i]. indices: i32 or i64, of the shape
/// of the first dimensions of their x. The result has as many rows as the largest index asks for; one that
/// nobody names is 0, and of several the last one stays: of the last x, there the last. A negative index:
/// InvalidArgumentError `Index <i> at offset <o> in indices is out of range` when it is run.
Output dynamic_stitch(const Scope& s, const Outputs& indices, const Outputs& xs);

}  // namespace kolo
