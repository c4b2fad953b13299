// What nodes follow from: walks over a graph against its edges.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include <kolo/core/graph/node.h>

namespace kolo::detail {

/// By their ids, which are a topological order.
using NodesById = std::map<int, const Node*>;

/// The nodes in `next`, and all that follow(node, next) appends to it for one that was reached, each once.
template <typename Follow>
NodesById reached(std::vector<const Node*> next, const Follow& follow) {
  NodesById found;
  while (!next.empty()) {
    const Node* const node = next.back();
    next.pop_back();
    if (found.emplace(node->id(), node).second) follow(*node, next);
  }
  return found;
}

/// The nodes of `ends`, and all whose values they are computed from.
inline NodesById ancestors_of(const Outputs& ends) {
  std::vector<const Node*> nodes;
  for (const Output& end : ends) nodes.push_back(end.node);
  return reached(std::move(nodes), [](const Node& node, std::vector<const Node*>& next) {
    for (const Output& in : node.inputs()) next.push_back(in.node);
  });
}

}  // namespace kolo::detail
