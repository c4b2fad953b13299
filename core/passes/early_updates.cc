// A pass: an update follows its gradient. Contract: pipeline.h.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/ops/training.h>
#include <kolo/core/ops/update_of_product.h>
#include <kolo/core/passes/pipeline.h>

namespace kolo {
namespace {

// Whether node `n` updates a variable with a gradient of its own memory.
bool follows_its_gradient(const StepGraph& graph, int n) {
  const StepNode& node = graph.nodes[n];
  const std::string& op = node.schema->name();
  return (find_update_rule(op) != nullptr || is_update_of_product(op)) &&
         graph.placements.count(graph.memory_root(node.inputs.back())) == 0;
}

// Whether the node is there to stop the step.
bool is_check(const StepNode& node) {
  return node.schema->name() == "CheckNumerics" || node.schema->name() == "Assert";
}

// What is but a name for memory, or a number such as a learning rate: made for the updates, long after the
// gradients in the order of creation. The check of a loss, too.
bool can_come_at_any_time(const StepNode& node) {
  if (node.schema->is_variable_storage()) return true;
  return (!node.schema->is_stateful() || is_check(node)) && !node.shapes.empty() &&
         std::all_of(node.shapes.begin(), node.shapes.end(),
                     [](const Shape& shape) { return shape.is_fully_known() && shape.elements() <= 1; });
}

class Orders {
 public:
  explicit Orders(StepGraph& graph) : graph_(graph) {
    for (const StepNode& node : graph.nodes) created_.push_back(node.order);
  }

  // Nodes that qualify come as early as what they wait for allows.
  template <typename Qualifies>
  void lower(const Qualifies& qualifies) {
    std::vector<std::int64_t> earliest(graph_.nodes.size());
    for (const int n : topological_order(graph_)) {
      StepNode& node = graph_.nodes[n];
      if (qualifies(n)) {
        std::int64_t order = last_check_before(n);
        for (const StepValue in : node.inputs) order = std::max(order, earliest[in.node] + 1);
        for (const int before : node.control_inputs) order = std::max(order, earliest[before] + 1);
        for (const int before : node.after) order = std::max(order, earliest[before] + 1);
        node.order = std::min(node.order, order);
      }
      earliest[n] = node.order;
    }
  }
  // From now on an update stays behind the checks that were created before it.
  void keep_behind_checks() {
    for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n)
      if (is_check(graph_.nodes[n])) checks_.push_back(n);
  }

 private:
  std::int64_t last_check_before(int n) const {
    std::int64_t order = 0;
    for (const int check : checks_)
      if (created_[check] < created_[n]) order = std::max(order, graph_.nodes[check].order + 1);
    return order;
  }

  StepGraph& graph_;
  std::vector<std::int64_t> created_;
  std::vector<int> checks_;
};

}  // namespace

void update_early(StepGraph& graph) {
  Orders orders(graph);
  orders.lower([&](int n) { return can_come_at_any_time(graph.nodes[n]); });
  orders.keep_behind_checks();
  orders.lower([&](int n) { return follows_its_gradient(graph, n); });
}

}  // namespace kolo
