#include <kolo/core/passes/update_guards.h>

#include <algorithm>
#include <vector>

#include <kolo/core/graph/graph.h>
#include <kolo/core/passes/variable_uses.h>

namespace kolo {
namespace {

// The node itself and all that it waits for, however indirectly.
std::vector<bool> with_ancestors(const StepGraph& graph, int node) {
  std::vector<bool> found(graph.nodes.size(), false);
  std::vector<int> stack{node};
  while (!stack.empty()) {
    const int n = stack.back();
    stack.pop_back();
    if (found[n]) continue;
    found[n] = true;
    for (const StepValue in : graph.nodes[n].inputs) stack.push_back(in.node);
    for (const int before : graph.nodes[n].control_inputs) stack.push_back(before);
    for (const int before : graph.nodes[n].after) stack.push_back(before);
  }
  return found;
}

bool updates_a_variable(const StepGraph& graph, int node) {
  const auto uses = variable_uses(graph, node);
  return std::any_of(uses.begin(), uses.end(), [](const VariableUse& use) { return use.updated; });
}

std::vector<int> guards_of(const StepGraph& graph) {
  std::vector<int> guards;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node* const origin = graph.nodes[i].origin;
    if (origin == nullptr) continue;
    const auto& all = origin->graph().collection(kUpdateGuards);
    if (all.empty()) break;  // one graph
    if (std::find(all.begin(), all.end(), origin) != all.end()) guards.push_back(i);
  }
  return guards;
}

}  // namespace

void guard_updates(StepGraph& graph) {
  for (const int guard : guards_of(graph)) {
    std::int64_t order = 0;
    for (const StepValue in : graph.nodes[guard].inputs)
      order = std::max(order, graph.nodes[in.node].order + 1);
    graph.nodes[guard].order = order;
    const std::vector<bool> needed = with_ancestors(graph, guard);
    for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i)
      if (!needed[i] && updates_a_variable(graph, i)) graph.nodes[i].after.push_back(guard);
  }
}

}  // namespace kolo
