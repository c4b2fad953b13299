// A pass: one kernel for the updates of many variables. Contract: pipeline.h.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <kolo/core/ops/training.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/variable_uses.h>

namespace kolo {
namespace {

using Members = std::vector<int>;  // nodes, in the order of creation

// What updates must share to be fused: op, device, scalars, and the node whose reduction they wait for, −1
// for none.
using Key = std::tuple<std::string, std::string, std::vector<StepValue>, int>;

int slots_of(const UpdateRuleOps& rule) { return static_cast<int>(rule.slots.size()); }

std::map<Key, Members> groups_of(const StepGraph& graph) {
  std::map<Key, Members> groups;
  const std::vector<bool> skipped = can_be_skipped(graph);
  const std::vector<std::vector<int>> users = graph.users();
  const auto is_fetched = [&](int node) {
    return std::any_of(graph.fetches.begin(), graph.fetches.end(),
                       [&](StepValue fetch) { return fetch.node == node; });
  };
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const StepNode& node = graph.nodes[i];
    const UpdateRuleOps* rule = find_update_rule(node.schema->name());
    if (rule == nullptr || skipped[i] || !users[i].empty() || is_fetched(i)) continue;
    const StepValue gradient = node.inputs.back();
    const bool waits = graph.placements.count(gradient) > 0;
    if (!waits && graph.shape(node.inputs[0]).elements() > kLargestFused) continue;
    const auto scalars = node.inputs.begin() + 1 + slots_of(*rule);
    groups[{node.schema->name(), node.device, {scalars, node.inputs.end() - 1}, waits ? gradient.node : -1}]
        .push_back(i);
  }
  for (auto& [key, members] : groups)
    std::sort(members.begin(), members.end(),
              [&](int a, int b) { return graph.nodes[a].order < graph.nodes[b].order; });
  return groups;
}

std::set<const Node*> updated_storages(const StepGraph& graph, const Members& members) {
  std::set<const Node*> storages;
  for (const int member : members)
    for (const VariableUse& use : variable_uses(graph, member))
      if (use.updated) storages.insert(use.storage);
  return storages;
}

// The fused node stands where its last member stood. What is between the first and the last must not notice:
// it neither waits for a member nor touches what they update.
bool can_be_one(const StepGraph& graph, const Members& members) {
  const std::set<const Node*> storages = updated_storages(graph, members);
  std::size_t updated = 0;
  for (const int member : members) {
    for (const auto& input : graph.nodes[member].schema->inputs()) updated += input.updated;
  }
  if (storages.size() < updated) return false;  // a variable that is updated twice
  const std::int64_t first = graph.nodes[members.front()].order, last = graph.nodes[members.back()].order;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const StepNode& node = graph.nodes[i];
    if (node.order < first || node.order > last) continue;
    for (const int before : node.control_inputs)
      if (std::find(members.begin(), members.end(), before) != members.end()) return false;
    if (std::find(members.begin(), members.end(), i) != members.end()) continue;
    for (const VariableUse& use : variable_uses(graph, i))
      if (storages.count(use.storage) > 0) return false;
  }
  // Nor may they notice: a gradient or scalar that is a variable's memory is read later now.
  const VariableVersions versions(graph);
  for (const int member : members) {
    const StepNode& node = graph.nodes[member];
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      if (!node.schema->input_spec(static_cast<int>(k)).updated &&
          versions.seen_by(graph, node.inputs[k], node.order) !=
              versions.seen_by(graph, node.inputs[k], last))
        return false;
  }
  // A gradient that is itself a variable's memory must be read before that variable changes.
  return std::none_of(members.begin(), members.end(), [&](int member) {
    return storages.count(variable_of(graph, graph.nodes[member].inputs.back())) > 0;
  });
}

StepNode fused_node(const StepGraph& graph, const Members& members) {
  const StepNode &first = graph.nodes[members.front()], &last = graph.nodes[members.back()];
  const UpdateRuleOps& rule = *find_update_rule(first.schema->name());
  const auto schema = schema_of_updates("FusedApply" + rule.name, rule, static_cast<int>(members.size()));
  StepNode fused;
  fused.schema = schema.get();
  fused.resource = schema;
  fused.name = fmt::format("{}_and_{}_more", first.name, members.size() - 1);
  fused.device = first.device;
  fused.order = last.order;
  const auto state = 1 + slots_of(rule);
  for (const int member : members)
    fused.inputs.insert(fused.inputs.end(), graph.nodes[member].inputs.begin(),
                        graph.nodes[member].inputs.begin() + state);
  fused.inputs.insert(fused.inputs.end(), first.inputs.begin() + state, first.inputs.end() - 1);
  std::set<int> before;
  for (const int member : members) {
    fused.inputs.push_back(graph.nodes[member].inputs.back());
    before.insert(graph.nodes[member].control_inputs.begin(), graph.nodes[member].control_inputs.end());
  }
  fused.control_inputs.assign(before.begin(), before.end());
  return fused;
}

// Whoever waits for a member waits for the fused node.
void redirect(StepGraph& graph, const std::map<int, int>& fused_of) {
  for (StepNode& node : graph.nodes) {
    const bool waits = std::any_of(node.control_inputs.begin(), node.control_inputs.end(),
                                   [&](int before) { return fused_of.count(before) > 0; });
    if (!waits) continue;
    std::vector<int> edges;
    for (const int before : node.control_inputs) {
      const auto fused = fused_of.find(before);
      const int now = fused == fused_of.end() ? before : fused->second;
      if (std::find(edges.begin(), edges.end(), now) == edges.end()) edges.push_back(now);
    }
    node.control_inputs = std::move(edges);
  }
}

}  // namespace

void fuse_updates(StepGraph& graph) {
  std::map<int, int> fused_of;
  for (const auto& [key, members] : groups_of(graph)) {
    if (members.size() < 2 || !can_be_one(graph, members)) continue;
    for (const int member : members) fused_of[member] = static_cast<int>(graph.nodes.size());
    graph.nodes.push_back(fused_node(graph, members));
  }
  if (fused_of.empty()) return;
  redirect(graph, fused_of);
  std::vector<bool> keep(graph.nodes.size(), true);
  for (const auto& [member, fused] : fused_of) keep[member] = false;
  graph.compact(keep);
}

}  // namespace kolo
