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

std::set<std::string> names_behind(const Outputs& outputs, const Outputs& inputs) {
  std::set<std::string> names;
  const auto is_fed = [&](const Output& value) {
    return std::find(inputs.begin(), inputs.end(), value) != inputs.end();
  };
  for (const auto& [id, node] : detail::nodes_behind(outputs, brought_along, is_fed))
    names.insert(node->name());
  return names;
}

void check_values(const Outputs& values) {
  for (const Output& value : values)
    if (value.index != 0)
      throw InvalidArgumentError("inference_graph: {} is not the first value of its node; its identity is",
                                 value.name());
}

NodeDef placeholder_for(const Output& value) {
  return {.name = value.node->name(),
          .op = "Placeholder",
          .inputs = {},
          .device = value.node->requested_device(),
          .colocation_groups = {},
          .attrs = {{"dtype", value.dtype()}, {"shape", value.shape()}},
          .output_shapes = {}};
}

}  // namespace

GraphDef inference_graph(const Outputs& outputs, const Outputs& inputs) {
  if (outputs.empty()) throw InvalidArgumentError("inference_graph: no outputs were given");
  check_values(outputs);
  check_values(inputs);
  std::set<std::string> kept = names_behind(outputs, inputs);
  GraphDef definition = to_graph_def(outputs.front().node->graph());
  for (const Output& input : inputs) {
    kept.insert(input.node->name());
    const auto found = std::find_if(definition.nodes.begin(), definition.nodes.end(),
                                    [&](const NodeDef& node) { return node.name == input.node->name(); });
    *found = placeholder_for(input);
  }
  std::erase_if(definition.nodes, [&](const NodeDef& node) { return kept.count(node.name) == 0; });
  for (auto& [name, nodes] : definition.collections)
    std::erase_if(nodes, [&](const std::string& node) { return kept.count(node) == 0; });
  std::erase_if(definition.collections, [](const auto& collection) { return collection.second.empty(); });
  std::vector<std::string>& results = definition.collections[kInferenceOutputs];
  results.clear();
  for (const Output& output : outputs) results.push_back(output.node->name());
  return definition;
}

void write_inference_graph(const std::string& directory, const Outputs& outputs, const Outputs& inputs) {
  write_graph_def(inference_graph(outputs, inputs), directory + "/" + kInferenceGraphFile);
}

}  // namespace kolo
