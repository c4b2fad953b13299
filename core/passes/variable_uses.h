// Which variables a node of a step reads and updates: by its inputs, and, a loop, by what runs inside of it.
#pragma once

#include <vector>

#include <kolo/core/passes/step_graph.h>

namespace kolo {

struct VariableUse {
  const Node* storage = nullptr;
  bool updated = false;  // else read, through whatever view
};

/// The storage of the variable whose memory, or part of it, `value` is; null if it is no variable's.
const Node* variable_of(const StepGraph& graph, StepValue value);
/// A variable may be in it more than once. A loop's storages need not be nodes of the step.
std::vector<VariableUse> variable_uses(const StepGraph& graph, int node);

}  // namespace kolo
