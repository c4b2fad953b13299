#include <kolo/core/training/optional_state.h>

#include <algorithm>

namespace kolo {
namespace {

bool is_in(const char* collection, const Node& node) {
  const auto& nodes = node.graph().collection(collection);
  return std::find(nodes.begin(), nodes.end(), &node) != nodes.end();
}

void put_in(Graph& graph, const char* collection, const Variable& variable) {
  const Node& node = *variable.ref().node;
  if (!is_in(collection, node)) graph.add_to_collection(collection, node);
}

}  // namespace

void mark_optional(Graph& graph, const Variable& variable) { put_in(graph, kOptionalVariables, variable); }

void mark_own_of_rank(Graph& graph, const Variable& variable) {
  put_in(graph, kOptionalVariables, variable);
  put_in(graph, kRankVariables, variable);
}

bool is_optional(const Variable& variable) { return is_in(kOptionalVariables, *variable.ref().node); }
bool is_own_of_rank(const Variable& variable) { return is_in(kRankVariables, *variable.ref().node); }

}  // namespace kolo
