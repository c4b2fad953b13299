#include <kolo/core/passes/variable_uses.h>

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

}  // namespace kolo
