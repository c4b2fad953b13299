// Which variables a node of a step reads and updates, by its inputs, and, a loop, by what runs inside of it;
// and whether two nodes that read one variable see the same value.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <kolo/core/passes/step_graph.h>

namespace kolo {

// Which variables a node of a step reads and updates: by its inputs, and, a loop, by what runs inside of it.

struct VariableUse {
  const Node* storage = nullptr;
  bool updated = false;  // else read, through whatever view
};

/// The storage of the variable whose memory, or part of it, `value` is; null if it is no variable's.
const Node* variable_of(const StepGraph& graph, StepValue value);
/// A variable may be in it more than once. A loop's storages need not be nodes of the step.
std::vector<VariableUse> variable_uses(const StepGraph& graph, int node);

// Tells whether two nodes that read one variable see the same value.

/// Within a step, reads and updates of a variable happen in the order of their creation (order_updates): a
/// reader sees as many of the updates as are older than it is. A loop that updates a variable is one update.
class VariableVersions {
 public:
  /// Counts the updates in `graph`, which passes may rewrite meanwhile as long as they keep them.
  explicit VariableVersions(const StepGraph& graph);

  /// True if `value` is the memory of a variable that the step changes.
  bool changes(const StepGraph& graph, StepValue value) const;
  /// How many updates a node of this `order` sees in `value`; 0 for what is no variable.
  int seen_by(const StepGraph& graph, StepValue value, std::int64_t order) const;
  /// The order of the last of them; −1 if there is none.
  std::int64_t last_seen_by(const StepGraph& graph, StepValue value, std::int64_t order) const;

 private:
  std::map<const Node*, std::vector<std::int64_t>> updates_;  // by the storage, ascending orders
};

}  // namespace kolo
