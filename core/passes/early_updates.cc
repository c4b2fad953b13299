// A pass: an update follows its gradient. Contract: pipeline.h.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/ops/product_updates.h>
#include <kolo/core/ops/training.h>
#include <kolo/core/passes/pipeline.h>

namespace kolo {
namespace {

// Whether node `n` updates a variable with a gradient of its own memory.
bool follows_its_gradient(const StepGraph& graph, int n) {
  const StepNode& node = graph.nodes[n];
  const std::string& op = node.schema->name();
  return (find_update_rule(op) != nullptr || is_product_update(op)) &&
         graph.placements.count(graph.memory_root(node.inputs.back())) == 0;
}

// What is but a name for memory, or a number such as a learning rate: made for the updates, long after the
// gradients in the order of creation.
bool can_come_at_any_time(const StepNode& node) {
  if (node.schema->is_variable_storage()) return true;
  return !node.schema->is_stateful() && !node.shapes.empty() &&
         std::all_of(node.shapes.begin(), node.shapes.end(),
                     [](const Shape& shape) { return shape.is_fully_known() && shape.elements() <= 1; });
}

}  // namespace

void update_early(StepGraph& graph) {
  std::vector<std::int64_t> earliest(graph.nodes.size());
  for (const int n : topological_order(graph)) {
    StepNode& node = graph.nodes[n];
    if (can_come_at_any_time(node) || follows_its_gradient(graph, n)) {
      std::int64_t order = 0;
      for (const StepValue in : node.inputs) order = std::max(order, earliest[in.node] + 1);
      for (const int before : node.control_inputs) order = std::max(order, earliest[before] + 1);
      for (const int before : node.after) order = std::max(order, earliest[before] + 1);
      node.order = std::min(node.order, order);
    }
    earliest[n] = node.order;
  }
}

}  // namespace kolo
