#include <kolo/core/cluster/master/extend_graph.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo::detail {
namespace {

void check_ops(const Graph& graph, const GraphDef& nodes, const std::string& target) {
  for (const NodeDef& node : nodes.nodes) {
    if (graph.find_node(node.name) != nullptr)
      throw InvalidArgumentError("the graph of this session has a node \"{}\" already", node.name);
    if (find_op(node.op).is_reducing_over_ranks())
      throw UnimplementedError("{} ({}) reduces over MPI ranks and cannot run in a session on {}", node.name,
                               node.op, target);
  }
}

// All that import_graph_def finds wrong, it finds in a graph that is thrown away. Old nodes are tried once
// more, since new ones may read any of them.
void try_out(const Graph& graph, const GraphDef& nodes) {
  GraphDef whole = to_graph_def(graph);
  whole.min_consumer = nodes.min_consumer;
  whole.collections.clear();
  whole.nodes.insert(whole.nodes.end(), nodes.nodes.begin(), nodes.nodes.end());
  Graph trial;
  import_graph_def(Scope(trial), whole);
}

void add(Graph& graph, const NodeDef& node) {
  NodePlace place;
  place.name = node.name;
  place.device = node.device;
  place.colocation_groups = node.colocation_groups;
  Outputs inputs;
  for (const std::string& input : node.inputs) {
    if (input.starts_with('^')) {
      place.control_inputs.push_back(graph.find_node(input.substr(1)));
      if (place.control_inputs.back() == nullptr)
        throw InvalidArgumentError("node \"{}\" waits for \"{}\", which comes after it", node.name,
                                   input.substr(1));
    } else {
      inputs.push_back(graph.find_output(input));
    }
  }
  const Node& added = graph.add_node(node.op, inputs, node.attrs, place);
  if (added.name() != node.name)
    throw InternalError("node \"{}\" became \"{}\" in the master's graph", node.name, added.name());
}

}  // namespace

void extend_graph(Graph& graph, const GraphDef& nodes, const std::string& target) {
  check_ops(graph, nodes, target);
  try_out(graph, nodes);
  for (const NodeDef& node : nodes.nodes) add(graph, node);
  if (!graph.seed() && nodes.seed) graph.set_seed(*nodes.seed);
}

}  // namespace kolo::detail
