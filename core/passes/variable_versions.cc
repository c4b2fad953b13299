#include <kolo/core/passes/variable_versions.h>

#include <algorithm>

namespace kolo {

VariableVersions::VariableVersions(const StepGraph& graph) {
  for (const StepNode& node : graph.nodes)
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.schema->input_spec(static_cast<int>(i)).updated)
        updates_[graph.memory_root(node.inputs[i]).node].push_back(node.order);
  for (auto& [storage, orders] : updates_) std::sort(orders.begin(), orders.end());
}

bool VariableVersions::changes(const StepGraph& graph, StepValue value) const {
  return updates_.count(graph.memory_root(value).node) > 0;
}

int VariableVersions::seen_by(const StepGraph& graph, StepValue value, std::int64_t order) const {
  const auto found = updates_.find(graph.memory_root(value).node);
  if (found == updates_.end()) return 0;
  const auto& orders = found->second;
  return static_cast<int>(std::lower_bound(orders.begin(), orders.end(), order) - orders.begin());
}

}  // namespace kolo
