// Updates that belong to a training step beside the optimizer's: the moving averages of batch normalization.
#pragma once

#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// The collection of nodes that store a value of the forward pass in a variable, as Assign does.
inline constexpr char kUpdateOps[] = "update_ops";

/// `update`: a node whose inputs are a variable and what it is updated from.
void add_update_op(const Scope& s, Operation update);
/// In order of creation. Each acts at once when it is run.
std::vector<Operation> update_ops(const Graph& graph);

/// `step`, and after it every update of the collection whose value `loss` is computed together with: what
/// Optimizer::minimize returns. Copies of the updates, which wait for `step`: a step that fails, or that the
/// other ranks do not apply, leaves the averages as they were. Returns `step` itself where there is none.
Operation with_updates(const Scope& s, Operation step, Output loss);

}  // namespace kolo
