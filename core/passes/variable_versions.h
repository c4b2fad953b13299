// Tells whether two nodes that read one variable see the same value.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// Within a step, reads and updates of a variable happen in the order of their creation (order_updates.h): a
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
