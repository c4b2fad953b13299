// Two passes: reads and updates of a variable in the order of their creation. Contract: pipeline.h.
#include <algorithm>
#include <map>
#include <set>

#include <kolo/core/graph/loop_nodes.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/variable_uses.h>

namespace kolo {
namespace {

struct Uses {
  std::vector<int> readers;  // nodes that read the variable's memory, through whatever view
  std::vector<int> updates;  // ascending
};

struct OlderStorage {
  bool operator()(const Node* a, const Node* b) const { return a->id() < b->id(); }
};
using UsesOfVariables = std::map<const Node*, Uses, OlderStorage>;  // by their storages

// Uses of each variable that some node of the step updates.
UsesOfVariables uses_of_updated_variables(const StepGraph& graph) {
  UsesOfVariables uses;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i)
    for (const VariableUse& use : variable_uses(graph, i)) {
      auto& nodes = use.updated ? uses[use.storage].updates : uses[use.storage].readers;
      if (nodes.empty() || nodes.back() != i) nodes.push_back(i);
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

void copy_fetches_that_would_change(StepGraph& graph, const UsesOfVariables& uses) {
  const auto fetches = graph.fetches;
  for (std::size_t i = 0; i < fetches.size(); ++i) {
    if (fetches[i].node < 0) continue;
    const Node* variable = variable_of(graph, fetches[i]);
    const auto found = variable == nullptr ? uses.end() : uses.find(variable);
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

// What a loop takes from outside is what it was when the loop began, in every iteration.
void copy_inputs_that_their_loop_changes(StepGraph& graph) {
  const int count = static_cast<int>(graph.nodes.size());
  for (int i = 0; i < count; ++i) {
    if (graph.nodes[i].origin == nullptr || !is_loop(*graph.nodes[i].origin)) continue;
    std::set<const Node*> changed;
    for (const VariableUse& use : variable_uses(graph, i))
      if (use.updated) changed.insert(use.storage);
    for (std::size_t k = 0; k < graph.nodes[i].inputs.size(); ++k) {
      const StepNode& node = graph.nodes[i];
      const StepValue in = node.inputs[k];
      if (changed.count(variable_of(graph, in)) == 0) continue;
      const int copy = graph.add(kCopyOp, node.name + "/initial", {in}, {}, node.order - 1);
      graph.nodes[copy].control_inputs = graph.nodes[i].control_inputs;
      graph.nodes[i].inputs[k] = {copy, 0};
    }
  }
}

// Each read waits for the update before it, each update for the reads since the one before it and, without
// any, for that update: all other orders follow, so that a variable of many uses gets few edges.
void order_uses(StepGraph& graph, const Uses& use) {
  struct Access {
    std::int64_t order;
    bool reads;  // of one order, the update comes first
    int node;
    auto operator<=>(const Access&) const = default;  // NOLINT(modernize-use-nullptr): of clang-tidy 14
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

void keep_read_values(StepGraph& graph) {
  const VariableVersions versions(graph);
  const auto has_time = [&](StepValue value) {  // of its own, at which it was read
    const StepNode& node = graph.nodes[value.node];
    return versions.changes(graph, value) && !node.schema->is_variable_storage() &&
           !is_variable_read(*node.origin);
  };
  std::map<StepValue, StepValue> copies;
  // Inputs come before their readers: a view of what is copied here is no view of the variable any more.
  const int count = static_cast<int>(graph.nodes.size());
  for (int n = 0; n < count; ++n)
    for (std::size_t k = 0; k < graph.nodes[n].inputs.size(); ++k) {
      const StepValue in = graph.nodes[n].inputs[k];
      if (!has_time(in)) continue;
      // An update has seen itself.
      const std::int64_t read = graph.nodes[in.node].order + 1;
      if (versions.seen_by(graph, in, read) == versions.seen_by(graph, in, graph.nodes[n].order)) continue;
      const auto [copy, is_new] = copies.try_emplace(in);
      if (is_new) copy->second = {graph.add(kCopyOp, graph.nodes[in.node].name + "/kept", {in}, {}, read), 0};
      graph.nodes[n].inputs[k] = copy->second;
    }
}

void order_updates(StepGraph& graph) {
  copy_inputs_that_their_loop_changes(graph);
  copy_fetches_that_would_change(graph, uses_of_updated_variables(graph));
  for (const auto& [storage, use] : uses_of_updated_variables(graph)) order_uses(graph, use);
}

}  // namespace kolo
