#include <kolo/core/graph/nodes_behind.h>

#include <kolo/core/graph/node.h>

namespace kolo::detail {

std::map<int, const Node*> nodes_behind(
    const Outputs& outputs, const std::function<std::vector<const Node*>(const Node& node)>& also) {
  std::map<int, const Node*> found;
  std::vector<const Node*> stack;
  for (const Output& output : outputs) stack.push_back(output.node);
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (!found.emplace(node->id(), node).second) continue;
    for (const Output& in : node->inputs()) stack.push_back(in.node);
    if (!also) continue;
    for (const Node* other : also(*node)) stack.push_back(other);
  }
  return found;
}

}  // namespace kolo::detail
