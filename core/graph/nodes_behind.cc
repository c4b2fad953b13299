#include <kolo/core/graph/nodes_behind.h>

#include <kolo/core/graph/node.h>

namespace kolo::detail {

std::map<int, const Node*> nodes_behind(const Outputs& outputs,
                                        const std::function<std::vector<const Node*>(const Node& node)>& also,
                                        const std::function<bool(const Output& value)>& is_fed) {
  std::map<int, const Node*> found;
  std::vector<const Node*> stack;
  for (const Output& output : outputs) stack.push_back(output.node);
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (!found.emplace(node->id(), node).second) continue;
    for (const Output& in : node->inputs())
      if (!is_fed || !is_fed(in)) stack.push_back(in.node);
    if (!also) continue;
    for (const Node* other : also(*node)) stack.push_back(other);
  }
  return found;
}

std::map<int, const Node*> nodes_of_run(const std::vector<const Node*>& targets,
                                        const std::function<bool(const Output& value)>& is_fed) {
  Outputs outputs;
  for (const Node* target : targets) outputs.push_back({target, 0});
  return nodes_behind(
      outputs, [](const Node& node) { return node.control_inputs(); }, is_fed);
}

}  // namespace kolo::detail
