#include <kolo/core/passes/variable_uses.h>

#include <algorithm>

#include <kolo/core/graph/loop_nodes.h>
#include <kolo/core/ops/variables.h>

namespace kolo {

const Node* variable_of(const StepGraph& graph, StepValue value) {
  const StepNode& root = graph.nodes[graph.memory_root(value).node];
  return root.schema->is_variable_storage() ? &whole_storage(*root.origin) : nullptr;
}

std::vector<VariableUse> variable_uses(const StepGraph& graph, int index) {
  const StepNode& node = graph.nodes[index];
  std::vector<VariableUse> uses;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (const Node* storage = variable_of(graph, node.inputs[i]))
      uses.push_back({storage, node.schema->input_spec(static_cast<int>(i)).updated});
  if (node.origin == nullptr || node.schema != &node.origin->schema()) return uses;
  // Inside, what reads a view of a variable comes after the view, which reads the variable itself.
  for (const Node* inner : nodes_in_loop(*node.origin))
    for (int i = 0; i < inner->num_inputs(); ++i)
      if (inner->input(i).node->schema().is_variable_storage())
        uses.push_back({&whole_storage(*inner->input(i).node), inner->schema().input_spec(i).updated});
  return uses;
}

VariableVersions::VariableVersions(const StepGraph& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (const VariableUse& use : variable_uses(graph, static_cast<int>(i)))
      if (use.updated) updates_[use.storage].push_back(graph.nodes[i].order);
  for (auto& [storage, orders] : updates_) {
    std::sort(orders.begin(), orders.end());
    orders.erase(std::unique(orders.begin(), orders.end()), orders.end());
  }
}

bool VariableVersions::changes(const StepGraph& graph, StepValue value) const {
  return updates_.count(variable_of(graph, value)) > 0;
}

int VariableVersions::seen_by(const StepGraph& graph, StepValue value, std::int64_t order) const {
  const auto found = updates_.find(variable_of(graph, value));
  if (found == updates_.end()) return 0;
  const auto& orders = found->second;
  return static_cast<int>(std::lower_bound(orders.begin(), orders.end(), order) - orders.begin());
}

std::int64_t VariableVersions::last_seen_by(const StepGraph& graph, StepValue value,
                                            std::int64_t order) const {
  const int seen = seen_by(graph, value, order);
  return seen == 0 ? -1 : updates_.at(variable_of(graph, value))[static_cast<std::size_t>(seen) - 1];
}

}  // namespace kolo
