#include <kolo/core/passes/place.h>

#include <cstdio>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/graph/loop_nodes.h>
#include <kolo/core/passes/prune.h>

namespace kolo {
namespace {

// A loop's node starts steps, on the host: of what was asked for, for the sake of the ops inside, it is
// concerned with the task.
std::string task_of(const std::string& device) {
  std::optional<DeviceSpec> spec = parse_device_spec(device);
  if (!spec) return device;  // which the placer refuses by name
  spec->type.reset(), spec->index.reset();
  return spec->to_string();
}

PlacerNode placer_node(const StepGraph& graph, const StepNode& node, const Placer& placer,
                       const Placements& placements) {
  PlacerNode made;
  made.name = node.name;
  made.schema = node.schema;
  if (!node.inputs.empty()) made.type = graph.dtype(node.inputs[0]);
  else if (!node.dtypes.empty()) made.type = node.dtypes[0];
  made.inputs = node.inputs;
  made.control_inputs = node.control_inputs;
  made.attrs = &node.attrs;
  if (node.origin == nullptr) {
    made.assigned_device = node.device.empty() ? placer.options().default_device : node.device;  // a feed
    made.in_groups = false;
    return made;
  }
  const bool loop = is_loop(*node.origin);
  made.requested_device = loop ? task_of(node.origin->requested_device()) : node.origin->requested_device();
  made.colocation_groups = node.origin->colocation_groups();
  made.in_groups = !loop;
  if (const std::string* device = placements.find(*node.origin)) made.assigned_device = *device;
  made.refused_type = placements.refused_type(*node.origin);
  return made;
}

PlacerNode constraint(const Node& node, const std::map<const Node*, int>& indices) {
  PlacerNode made;
  made.name = node.name();
  made.schema = &node.schema();
  if (node.num_inputs() > 0) made.type = node.input(0).dtype();
  else if (node.num_outputs() > 0) made.type = node.output_dtype(0);
  made.requested_device = node.requested_device();
  made.colocation_groups = node.colocation_groups();
  made.in_groups = !is_loop(node);
  for (const Output& in : node.inputs()) {
    const auto found = indices.find(in.node);
    made.inputs.push_back({found == indices.end() ? -1 : found->second, in.index});
  }
  made.attrs = &node.attrs();
  made.constraint_only = true;
  return made;
}

// What is to be with nodes of the step without being part of it: what updates a variable that has no place
// yet, and the op whose value is fed, which a later step may run.
void add_constraints(const StepGraph& graph, Placements& placements, std::vector<PlacerNode>& nodes) {
  std::map<const Node*, int> indices;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].origin != nullptr) indices[graph.nodes[i].origin] = static_cast<int>(i);
  std::map<const Node*, bool> added;
  const auto add = [&](const Node& node) {
    if (indices.count(&node) == 0 && !std::exchange(added[&node], true))
      nodes.push_back(constraint(node, indices));
  };
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const StepNode& node = graph.nodes[i];
    if (node.fed != nullptr && !is_placeholder(*node.fed) && placements.find(*node.fed) == nullptr)
      add(*node.fed);
    if (!node.schema->is_variable_storage() || !nodes[i].assigned_device.empty()) continue;
    for (const Node* updater : placements.updaters_of(*node.origin)) add(*updater);
  }
}

void log_placement(const PlacerNode& node) {
  std::printf("%s: (%s): %s\n", node.name.c_str(), node.schema->name().c_str(), node.assigned_device.c_str());
  log_info("{}: ({}): {}", node.name, node.schema->name(), node.assigned_device);
}

}  // namespace

const std::string* Placements::find(const Node& node) const {
  const auto found = devices_.find(node.id());
  return found == devices_.end() ? nullptr : &found->second;
}

void Placements::add(const Node& node, const std::string& device, bool with_groups) {
  devices_[node.id()] = device;
  if (!with_groups) return;
  bool in_group = false;
  for (const std::string& group : node.colocation_groups())
    if (group.starts_with(kGroupPrefix)) {
      in_group = true;
      groups_.emplace(group.substr(sizeof(kGroupPrefix) - 1), device);
    }
  if (!in_group) groups_.emplace(node.name(), device);
}

bool Placements::refuse(const Node& node, const std::string& device_type) {
  if (!refused_.emplace(node.id(), device_type).second) return false;
  devices_.erase(node.id());
  groups_.erase(node.name());
  return true;
}

const std::string& Placements::refused_type(const Node& node) const {
  static const std::string none;
  const auto found = refused_.find(node.id());
  return found == refused_.end() ? none : found->second;
}

const std::vector<const Node*>& Placements::updaters_of(const Node& storage) {
  const Graph& graph = storage.graph();
  for (const int count = graph.num_nodes(); scanned_ < count; ++scanned_) {
    const Node& node = graph.node(scanned_);
    for (int i = 0; i < node.num_inputs(); ++i)
      if (node.schema().input_spec(i).updated) updaters_[node.input(i).node->id()].push_back(&node);
  }
  return updaters_[storage.id()];
}

void place(StepGraph& graph, const Placer& placer, Placements& placements) {
  const bool one_device =
      placer.devices().size() == 1;  // nothing to keep apart, nothing to remember of groups
  std::vector<PlacerNode> nodes;
  nodes.reserve(graph.nodes.size());
  for (const StepNode& node : graph.nodes) nodes.push_back(placer_node(graph, node, placer, placements));
  if (!one_device) add_constraints(graph, placements, nodes);
  const std::vector<int> placed = placer.place(nodes, placements.group_devices());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) graph.nodes[i].device = nodes[i].assigned_device;
  for (const int i : placed) {
    placements.add(*graph.nodes[i].origin, nodes[i].assigned_device, !one_device && nodes[i].in_groups);
    if (placer.options().log_placement) log_placement(nodes[i]);
  }
  if (placer.options().log_placement) std::fflush(stdout);
}

}  // namespace kolo
