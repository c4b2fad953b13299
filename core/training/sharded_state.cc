#include <kolo/core/training/sharded_state.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/training/optional_state.h>

namespace kolo {
namespace {

// Says what the variable is a part of; never run. A node, so that an exported graph tells it, too.
const RegisterOp shard_of_op(OpSchema("ShardOf")
                                 .input("ref")
                                 .required_attr("whole", "")
                                 .required_attr("shape", Shape())
                                 .required_attr("first", 0)
                                 .stateful()
                                 .no_gradient());

constexpr char kSuffix[] = "/shard_of";

ShardOf described_by(const Node& node) {
  return {.name = node.attr<std::string>("whole"),
          .shape = node.attr<Shape>("shape"),
          .first = node.attr<std::int64_t>("first")};
}

void check(const Graph& graph, const Variable& variable, const ShardOf& whole) {
  if (shard_of(variable))
    throw InvalidArgumentError("\"{}\" is marked as a shard of \"{}\" already", variable.name(),
                               shard_of(variable)->name);
  if (!whole.shape.is_fully_known())
    throw InvalidArgumentError("shard \"{}\": the shape of \"{}\" is {}; it must be fully known",
                               variable.name(), whole.name, whole.shape);
  const std::int64_t elements = variable.shape().elements(), all = whole.shape.elements();
  if (whole.first < 0 || whole.first > all || elements > all - whole.first)
    throw InvalidArgumentError(
        "shard \"{}\": {} elements from element {} on do not lie in \"{}\" of shape {}, which has {}",
        variable.name(), elements, whole.first, whole.name, whole.shape, all);
  if (whole.name.empty())
    throw InvalidArgumentError("shard \"{}\": the name of the whole tensor is empty", variable.name());
  for (const Variable& other : global_variables(graph))
    if (other.name() == whole.name)
      throw InvalidArgumentError("shard \"{}\": the graph has a variable \"{}\", which cannot be its whole",
                                 variable.name(), whole.name);
}

void put_in(Graph& graph, const char* collection, const Node& node) {
  const auto& nodes = graph.collection(collection);
  if (std::find(nodes.begin(), nodes.end(), &node) == nodes.end()) graph.add_to_collection(collection, node);
}

}  // namespace

void mark_shard(Graph& graph, const Variable& variable, const ShardOf& whole) {
  check(graph, variable, whole);
  const Node& node = *Scope(graph)
                          .without_control_dependencies()
                          .add("ShardOf", {variable.ref()},
                               {{"whole", whole.name}, {"shape", whole.shape}, {"first", whole.first}},
                               variable.name() + kSuffix)
                          .node;
  graph.add_to_collection(kShards, node);
  put_in(graph, kRankVariables, *variable.ref().node);
}

std::optional<ShardOf> shard_of(const Variable& variable) {
  const Node& storage = *variable.ref().node;
  for (const Node* node : storage.graph().collection(kShards))
    if (node->input(0).node == &storage) return described_by(*node);
  return {};
}

std::vector<std::pair<Variable, ShardOf>> shards(const Graph& graph) {
  std::vector<std::pair<Variable, ShardOf>> all;
  for (const Node* node : graph.collection(kShards))
    all.emplace_back(Variable::of(*node->input(0).node), described_by(*node));
  return all;
}

void mark_scratch(Graph& graph, const Variable& variable) {
  put_in(graph, kScratchVariables, *variable.ref().node);
  put_in(graph, kRankVariables, *variable.ref().node);
}

bool is_scratch(const Variable& variable) {
  const Node& storage = *variable.ref().node;
  const auto& nodes = storage.graph().collection(kScratchVariables);
  return std::find(nodes.begin(), nodes.end(), &storage) != nodes.end();
}

}  // namespace kolo
