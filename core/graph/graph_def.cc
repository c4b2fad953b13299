#include <kolo/core/graph/graph_def.h>

#include <fmt/format.h>

namespace kolo {
namespace {

std::string input_name(const Output& in) { return in.index == 0 ? in.node->name() : in.name(); }

NodeDef definition_of(const Node& node, const GraphDefOptions& options) {
  NodeDef definition{.name = node.name(),
                     .op = node.op(),
                     .inputs = {},
                     .device = node.requested_device(),
                     .colocation_groups = node.colocation_groups(),
                     .attrs = node.attrs(),
                     .output_shapes = {}};
  for (const Output& in : node.inputs()) definition.inputs.push_back(input_name(in));
  for (const Node* before : node.control_inputs()) definition.inputs.push_back("^" + before->name());
  if (options.output_shapes)
    for (int i = 0; i < node.num_outputs(); ++i) definition.output_shapes.push_back(node.output_shape(i));
  return definition;
}

}  // namespace

GraphDef to_graph_def(const Graph& graph, const GraphDefOptions& options) {
  GraphDef definition;
  definition.seed = graph.seed();
  for (int id = 0; id < graph.num_nodes(); ++id)
    definition.nodes.push_back(definition_of(graph.node(id), options));
  for (const auto& [name, nodes] : graph.collections())
    for (const Node* node : nodes) definition.collections[name].push_back(node->name());
  return definition;
}

}  // namespace kolo
