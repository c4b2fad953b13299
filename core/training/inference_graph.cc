#include <kolo/core/training/inference_graph.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/graph/nodes_behind.h>
#include <kolo/core/ops/variables.h>

namespace kolo {
namespace {

// A variable comes with its initialiser and its read.
std::vector<const Node*> brought_along(const Node& node) {
  std::vector<const Node*> others(node.control_inputs().begin(), node.control_inputs().end());
  if (node.op() != "Variable") return others;
  const Variable variable = Variable::of(node);
  others.push_back(variable.initializer().node);
  others.push_back(variable.read().node);
  return others;
}

std::set<std::string> names_behind(const Outputs& outputs) {
  std::set<std::string> names;
  for (const auto& [id, node] : detail::nodes_behind(outputs, brought_along)) names.insert(node->name());
  return names;
}

}  // namespace

GraphDef inference_graph(const Outputs& outputs) {
  if (outputs.empty()) throw InvalidArgumentError("inference_graph: no outputs were given");
  for (const Output& output : outputs)
    if (output.index != 0)
      throw InvalidArgumentError("inference_graph: {} is not the first value of its node; its identity is",
                                 output.name());
  const std::set<std::string> kept = names_behind(outputs);
  GraphDef definition = to_graph_def(outputs.front().node->graph());
  std::erase_if(definition.nodes, [&](const NodeDef& node) { return kept.count(node.name) == 0; });
  for (auto& [name, nodes] : definition.collections)
    std::erase_if(nodes, [&](const std::string& node) { return kept.count(node) == 0; });
  std::erase_if(definition.collections, [](const auto& collection) { return collection.second.empty(); });
  std::vector<std::string>& results = definition.collections[kInferenceOutputs];
  results.clear();
  for (const Output& output : outputs) results.push_back(output.node->name());
  return definition;
}

void write_inference_graph(const std::string& directory, const Outputs& outputs) {
  write_graph_def(inference_graph(outputs), directory + "/" + kInferenceGraphFile);
}

}  // namespace kolo
