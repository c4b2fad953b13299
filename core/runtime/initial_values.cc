#include <kolo/core/runtime/initial_values.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include <kolo/core/passes/variable_uses.h>

namespace kolo {
namespace {

constexpr std::size_t kSmallest = std::size_t{1} << 20;

// The first node that reads or updates each variable.
std::map<const Node*, int> first_uses(const StepGraph& graph) {
  std::map<const Node*, int> first;
  for (const int n : topological_order(graph))
    for (const VariableUse& use : variable_uses(graph, n)) first.try_emplace(use.storage, n);
  return first;
}

bool is_fetched(const StepGraph& graph, StepValue value) {
  return std::any_of(graph.fetches.begin(), graph.fetches.end(),
                     [&](StepValue fetch) { return fetch.node >= 0 && graph.memory_root(fetch) == value; });
}

}  // namespace

void place_initial_values(StepGraph& graph,
                          const std::function<const VariableStorage&(const Node& storage)>& kept_of) {
  const std::map<const Node*, int> first = first_uses(graph);
  const std::vector<std::vector<int>> users = graph.users();
  const std::vector<bool> skipped = can_be_skipped(graph);
  for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
    const StepNode& node = graph.nodes[n];
    if (node.schema->name() != "Assign" || skipped[n] || !is_on_cpu(node)) continue;
    // A condition or a guard may stop the step before the assignment, but behind what makes the value.
    if (!node.control_inputs.empty() || !node.after.empty()) continue;
    const StepValue variable = node.inputs[0], value = node.inputs[1];
    const StepNode &storage = graph.nodes[variable.node], &maker = graph.nodes[value.node];
    if (storage.schema->name() != "Variable" || storage.device != node.device ||
        maker.device != node.device || !graph.is_made_in_given_memory(value) || is_fetched(graph, value) ||
        users[value.node] != std::vector<int>{n})
      continue;
    // What reads the variable before would find the new value there.
    if (first.at(storage.origin) != n) continue;
    const VariableStorage& keeper = kept_of(*storage.origin);
    const Tensor& kept = keeper.value;
    if (keeper.initialized || kept.dtype() != graph.dtype(value) || kept.shape() != graph.shape(value) ||
        kept.bytes() < kSmallest)
      continue;
    graph.placements[value] = {kept.buffer(), static_cast<std::size_t>(kept.raw() - kept.buffer()->data())};
  }
}

}  // namespace kolo
