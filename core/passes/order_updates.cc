#include <kolo/core/passes/order_updates.h>

#include <algorithm>
#include <map>

namespace kolo {
namespace {

struct Uses {
  std::vector<int> readers;  // nodes that read the variable's memory, through whatever view
  std::vector<int> updates;  // ascending
};

// Uses of each variable that some node of the step updates; keyed by the storage's node.
std::map<int, Uses> uses_of_updated_variables(const StepGraph& graph) {
  std::map<int, Uses> uses;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (std::size_t k = 0; k < graph.nodes[i].inputs.size(); ++k) {
      const int root = graph.memory_root(graph.nodes[i].inputs[k]).node;
      if (!graph.nodes[root].schema->is_variable_storage()) continue;
      const bool updated = graph.nodes[i].schema->input_spec(static_cast<int>(k)).updated;
      (updated ? uses[root].updates : uses[root].readers).push_back(static_cast<int>(i));
    }
  for (auto it = uses.begin(); it != uses.end();)
    it = it->second.updates.empty() ? uses.erase(it) : std::next(it);
  return uses;
}

void add_edge(StepGraph& graph, int before, int after) {
  auto& edges = graph.nodes[after].after;
  const auto& inputs = graph.nodes[after].inputs;
  const bool known =
      std::find(edges.begin(), edges.end(), before) != edges.end() ||
      std::any_of(inputs.begin(), inputs.end(), [&](StepValue in) { return in.node == before; });
  if (!known && before != after) edges.push_back(before);
}

void copy_fetches_that_would_change(StepGraph& graph, const std::map<int, Uses>& uses) {
  const auto fetches = graph.fetches;
  for (std::size_t i = 0; i < fetches.size(); ++i) {
    if (fetches[i].node < 0) continue;
    const auto found = uses.find(graph.memory_root(fetches[i]).node);
    if (found == uses.end()) continue;
    const std::int64_t order = graph.nodes[fetches[i].node].order;
    const auto& updates = found->second.updates;
    const bool changes = std::any_of(updates.begin(), updates.end(),
                                     [&](int update) { return graph.nodes[update].order > order; });
    if (changes)
      graph.fetches[i] = {
          graph.add(kCopyOp, graph.nodes[fetches[i].node].name + "/fetched", {fetches[i]}, {}, order + 1), 0};
  }
}

// Each read waits for the update before it, each update for the reads since the one before it and, without
// any, for that update: all other orders follow, so that a variable of many uses gets few edges.
void order_uses(StepGraph& graph, const Uses& use) {
  struct Access {
    std::int64_t order;
    bool reads;  // of one order, the update comes first
    int node;
    auto operator<=>(const Access&) const = default;
  };
  std::vector<Access> accesses;
  for (const int update : use.updates) accesses.push_back({graph.nodes[update].order, false, update});
  for (const int reader : use.readers)
    if (std::find(use.updates.begin(), use.updates.end(), reader) == use.updates.end())
      accesses.push_back({graph.nodes[reader].order, true, reader});
  std::sort(accesses.begin(), accesses.end());

  int last_update = -1;
  std::vector<int> readers;  // since then
  for (const Access& access : accesses) {
    if (access.reads) {
      if (last_update >= 0) add_edge(graph, last_update, access.node);
      readers.push_back(access.node);
      continue;
    }
    for (const int reader : readers) add_edge(graph, reader, access.node);
    if (last_update >= 0 && readers.empty()) add_edge(graph, last_update, access.node);
    last_update = access.node;
    readers.clear();
  }
}

}  // namespace

void order_updates(StepGraph& graph) {
  copy_fetches_that_would_change(graph, uses_of_updated_variables(graph));
  for (const auto& [storage, use] : uses_of_updated_variables(graph)) order_uses(graph, use);
}

}  // namespace kolo
