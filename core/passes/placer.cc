#include <kolo/core/passes/placer.h>

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/passes/placer_internal.h>

namespace kolo::detail {
namespace {

bool has_own_priorities(const SupportedTypes& types) {
  return std::any_of(types.begin(), types.end(),
                     [&](const SupportedType& t) { return t.priority != types.front().priority; });
}

// Those of `from` that `in` has as well, in from's order and with its priorities.
SupportedTypes kept(const SupportedTypes& from, const SupportedTypes& in) {
  SupportedTypes types;
  for (const SupportedType& t : from)
    if (std::any_of(in.begin(), in.end(), [&](const SupportedType& o) { return o.type == t.type; }))
      types.push_back(t);
  return types;
}

bool same_order(const SupportedTypes& a, const SupportedTypes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SupportedType& x, const SupportedType& y) { return x.type == y.type; });
}

bool takes(const KernelSupport& kernel, std::optional<DType> type) {
  return !type || kernel.types.empty() ||
         std::find(kernel.types.begin(), kernel.types.end(), *type) != kernel.types.end();
}

}  // namespace

TypeOrder::TypeOrder(const std::vector<PlacerDevice>& devices) {
  for (const PlacerDevice& device : devices) {
    int& priority = priorities_[device.spec.type.value()];
    priority = std::max(priority, device.priority);
  }
}

void TypeOrder::sort(SupportedTypes& types) const {
  const auto rank = [&](const SupportedType& t) {
    return std::make_tuple(-t.priority, -priorities_.at(t.type), t.type);
  };
  std::sort(types.begin(), types.end(),
            [&](const SupportedType& a, const SupportedType& b) { return rank(a) < rank(b); });
}

SupportedTypes intersect(const SupportedTypes& a, const SupportedTypes& b, const TypeOrder& order) {
  SupportedTypes of_a = kept(a, b);
  const SupportedTypes of_b = kept(b, a);
  if (has_own_priorities(a) && has_own_priorities(b)) {
    if (same_order(of_a, of_b)) return of_a;
    for (SupportedType& t : of_a) t.priority = 0;
    order.sort(of_a);
    return of_a;
  }
  return has_own_priorities(b) ? of_b : of_a;
}

Colocation::Colocation(const Placer& placer, const std::vector<PlacerNode>& nodes)
    : placer_(placer),
      nodes_(nodes),
      order_(placer.devices()),
      parent_(nodes.size()),
      groups_(nodes.size()),
      skipped_(nodes.size()) {
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    parent_[i] = i;
    add(i);
  }
}

void Colocation::refuse(int node, Code code, const std::string& message) const {
  throw_error(code, message + "\n\t " + node_summary(nodes_, node));
}

SupportedTypes Colocation::supported_types(const PlacerNode& node) {
  const auto key = std::make_pair(node.schema, node.type ? static_cast<int>(*node.type) : -1);
  const auto [found, is_new] = supported_.try_emplace(key);
  if (!is_new) return found->second;
  std::map<std::string, int> best;
  for (const KernelSupport& kernel : placer_.kernels()(*node.schema)) {
    if (order_.priorities().count(kernel.device_type) == 0 || !takes(kernel, node.type)) continue;
    const auto [entry, first] = best.emplace(kernel.device_type, kernel.priority);
    if (!first) entry->second = std::max(entry->second, kernel.priority);
  }
  for (const auto& [type, priority] : best) found->second.push_back({type, priority});
  order_.sort(found->second);
  return found->second;
}

void Colocation::add(int index) {
  const PlacerNode& node = nodes_[index];
  Group& group = groups_[index];
  group.types = supported_types(node);
  if (!node.refused_type.empty())
    std::erase_if(group.types, [&](const SupportedType& own) { return own.type == node.refused_type; });
  if (!node.assigned_device.empty()) return add_assigned(index);
  const auto spec = parse_device_spec(node.requested_device);
  if (node.constraint_only && (group.types.empty() || !spec)) {
    skipped_[index] = true;
    return;
  }
  if (!spec)
    refuse(index, Code::invalid_argument,
           fmt::format("Malformed device specification '{}'", node.requested_device));
  if (group.types.empty()) {
    std::string types;
    for (const auto& [type, priority] : order_.priorities()) types += (types.empty() ? "" : ",") + type;
    refuse(index, Code::invalid_argument,
           fmt::format("No OpKernel was registered to support Op '{}' with these attrs.  Registered devices: "
                       "[{}], Registered kernels:\n{}\n",
                       node.schema->name(), types, describe_kernels(placer_.kernels()(*node.schema))));
  }
  group.spec = *spec;
}

void Colocation::add_assigned(int index) {
  const PlacerNode& node = nodes_[index];
  const auto spec = parse_device_spec(node.assigned_device);
  if (!spec)
    refuse(index, Code::internal, fmt::format("Malformed assigned device '{}'", node.assigned_device));
  const auto& devices = placer_.devices();
  if (std::none_of(devices.begin(), devices.end(), [&](const PlacerDevice& d) { return d.spec == *spec; }))
    refuse(index, Code::internal,
           fmt::format("Assigned device '{}' does not match any device", node.assigned_device));
  Group& group = groups_[index];
  if (std::none_of(group.types.begin(), group.types.end(),
                   [&](const SupportedType& t) { return t.type == *spec->type; }))
    refuse(index, Code::internal,
           fmt::format("Assigned device '{}' does not have registered OpKernel support for {}",
                       node.assigned_device, node.schema->name()));
  group.spec = *spec;
  group.assigned = true;
}

int Colocation::root(int node) const {
  while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
  return node;
}

std::string Colocation::merged(const Group& a, const Group& b, Conflict conflict, Group& result) const {
  try {
    result.spec = merge_constraints(a.spec, b.spec, a.assigned || b.assigned ? Conflict::error : conflict);
  } catch (const InvalidArgumentError& error) {
    return fmt::format(": {}", error.what());
  }
  result.types = intersect(a.types, b.types, order_);
  if (result.types.empty())
    return " because no device type supports both of those nodes and the other nodes colocated with them.";
  result.assigned = a.assigned || b.assigned;
  return "";
}

bool Colocation::can_be_placed(const Group& group) const {
  if (placer_.options().allow_soft_placement && !group.assigned) return true;
  const auto& devices = placer_.devices();
  return std::any_of(devices.begin(), devices.end(), [&](const PlacerDevice& device) {
    return group.spec.matches(device.spec) &&
           std::any_of(group.types.begin(), group.types.end(),
                       [&](const SupportedType& t) { return t.type == *device.spec.type; });
  });
}

std::string Colocation::join(int a, int b, Conflict conflict) {
  const int root_a = root(a), root_b = root(b);
  if (root_a == root_b) return "";
  Group both;
  std::string reason = merged(groups_[root_a], groups_[root_b], conflict, both);
  // A node that is not to be placed now must not take the last device from those that are.
  const bool is_wish = nodes_[a].constraint_only || nodes_[b].constraint_only;
  if (reason.empty() && is_wish && !can_be_placed(both)) reason = ": no device suits both";
  if (!reason.empty())
    return fmt::format("Cannot colocate nodes '{}' and '{}'{}{}{}", nodes_[a].name, nodes_[b].name, reason,
                       debug_text(a), debug_text(b));
  parent_[std::max(root_a, root_b)] = std::min(root_a, root_b);
  groups_[std::min(root_a, root_b)] = std::move(both);
  return "";
}

void Colocation::join_all(const std::map<std::string, std::string>& group_devices) {
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i)
    if (!skipped_[i]) join_by_references(i);
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i)
    if (!skipped_[i] && nodes_[i].in_groups) join_by_names(i, group_devices);
}

void Colocation::join_by_references(int index) {
  const PlacerNode& node = nodes_[index];
  std::vector<int> variables;
  for (std::size_t k = 0; k < node.inputs.size(); ++k)
    if (node.inputs[k].node >= 0 && node.schema->input_spec(static_cast<int>(k)).updated)
      variables.push_back(node.inputs[k].node);
  // The variables' side wins over what the node asks for, whichever of them it is.
  for (const int variable : variables) {
    Group& own = groups_[index];
    if (!node.assigned_device.empty() || own.spec.is_compatible_with(group(variable).spec)) continue;
    if (placer_.options().log_placement)
      log_info(
          "Ignoring device specification {} for node '{}' because the input edge from '{}' is a reference "
          "connection and already has a device field set to {}",
          own.spec.to_string(), node.name, nodes_[variable].name, group(variable).spec.to_string());
    own.spec = {};
  }
  for (const int variable : variables) {
    // Soft placement or not: no other device has the variable's memory.
    const std::string reason = join(variable, index, Conflict::error);
    if (reason.empty() || node.constraint_only) continue;
    refuse(
        index, Code::invalid_argument,
        "Nodes were connected by a reference connection (requiring them to be on the same device), but the "
        "two nodes were assigned two different devices: " +
            reason);
  }
}

void Colocation::join_by_names(int index, const std::map<std::string, std::string>& group_devices) {
  const PlacerNode& node = nodes_[index];
  const bool soft = placer_.options().allow_soft_placement;
  const Conflict conflict = soft ? Conflict::soft : Conflict::error;
  const auto join_group = [&](const std::string& name) {
    const auto [first, is_new] = by_name_.emplace(name, index);
    const auto before = is_new ? group_devices.find(name) : group_devices.end();
    if (is_new && before == group_devices.end()) return;
    const std::string reason =
        is_new ? restrict_to(index, before->second) : join(index, first->second, conflict);
    if (reason.empty() || node.constraint_only) return;
    if (!soft) refuse(index, Code::invalid_argument, reason);
    if (placer_.options().log_placement)
      log_info(
          "Ignoring request to colocate node '{}' with nodes in colocation group '{}' because soft placement "
          "is on and an attempt at doing so resulted in the following error: {}",
          node.name, name, reason);
  };
  bool in_group = false;
  for (const std::string& text : node.colocation_groups)
    if (text.starts_with(kGroupPrefix)) {
      in_group = true;
      join_group(text.substr(sizeof(kGroupPrefix) - 1));
    }
  if (!in_group) join_group(node.name);
}

// For a group of which a node has been placed by an earlier run that is not among these nodes.
std::string Colocation::restrict_to(int index, const std::string& device) {
  Group& own = groups_[root(index)];
  if (own.assigned) return "";
  Group placed = own;
  placed.spec = parse_device_spec(device).value();
  placed.assigned = true;
  Group both;
  const std::string reason = merged(placed, own, Conflict::error, both);
  if (!reason.empty())
    return fmt::format("Cannot colocate node '{}' with its group, which is on '{}'{}", nodes_[index].name,
                       device, reason);
  own = std::move(both);
  return "";
}

std::string Colocation::debug_text(int node) const {
  std::map<std::string, std::string> types_of_ops;
  int members = 0;
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    if (root(i) != root(node) || skipped_[i]) continue;
    ++members;
    std::string types;
    const auto& node_i = nodes_[i];
    const auto key = std::make_pair(node_i.schema, node_i.type ? static_cast<int>(*node_i.type) : -1);
    for (const SupportedType& t : supported_.at(key)) types += t.type + " ";
    types_of_ops[node_i.schema->name()] = types;
  }
  if (members <= 1) return "";
  std::string text = "\nColocation Debug Info:\nColocation group had the following types and devices: ";
  for (const auto& [op, types] : types_of_ops) text += fmt::format("\n{}: {}", op, types);
  return text + "\n";
}

}  // namespace kolo::detail

namespace kolo {
namespace {

using detail::Colocation;
using detail::SupportedTypes;
using Candidates = std::vector<const PlacerDevice*>;  // best first

// The devices that one group of nodes may go to, and the reason where there is none.
class Choice {
 public:
  Choice(const Placer& placer, const std::vector<PlacerNode>& nodes, const Colocation& colocation)
      : placer_(placer), nodes_(nodes), colocation_(colocation), found_(nodes.size()) {
    if (!placer.options().default_device.empty())
      own_task_ = parse_device_spec(placer.options().default_device);
  }

  /// Never empty: throws as Placer::place.
  const Candidates& candidates(int node) {
    const int root = colocation_.root(node);
    if (!found_[root].empty()) return found_[root];
    const Colocation::Group& group = colocation_.group(node);
    found_[root] = matching(group.spec, group.types);
    if (found_[root].empty() && placer_.options().allow_soft_placement && !group.assigned) {
      DeviceSpec relaxed = group.spec;
      relaxed.type.reset(), relaxed.index.reset();
      found_[root] = matching(relaxed, group.types);
    }
    if (found_[root].empty())
      colocation_.refuse(node, Code::invalid_argument,
                         fmt::format("Cannot assign a device to node '{}': Could not satisfy explicit device "
                                     "specification '{}'{}{}",
                                     nodes_[node].name, nodes_[node].requested_device, reason(node),
                                     colocation_.debug_text(node)));
    return found_[root];
  }

 private:
  Candidates matching(const DeviceSpec& spec, const SupportedTypes& types) const {
    const bool own_first = own_task_ && !spec.job && !spec.task;
    std::vector<std::pair<std::tuple<bool, std::size_t>, const PlacerDevice*>> ranked;
    for (const PlacerDevice& device : placer_.devices()) {  // by name, and the sort is stable
      if (!spec.matches(device.spec)) continue;
      const auto type = std::find_if(types.begin(), types.end(),
                                     [&](const auto& t) { return t.type == *device.spec.type; });
      if (type == types.end()) continue;
      const bool foreign = own_first && !device.spec.shares_address_space_with(*own_task_);
      ranked.push_back({{foreign, type - types.begin()}, &device});
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Candidates devices;
    for (const auto& [rank, device] : ranked) devices.push_back(device);
    return devices;
  }

  std::string reason(int node) const {
    const DeviceSpec& wanted = colocation_.group(node).spec;
    const auto requested = parse_device_spec(nodes_[node].requested_device);
    if (requested != wanted)
      return fmt::format(
          " because the node was colocated with a group of nodes that required incompatible device '{}'",
          wanted.to_string());
    std::string available;
    bool any_matches = false;
    for (const PlacerDevice& device : placer_.devices()) {
      any_matches |= wanted.matches(device.spec);
      available += (available.empty() ? "" : ", ") + device.name;
    }
    if (!any_matches)
      return " because no devices matching that specification are registered in this process; available "
             "devices: " +
             available;
    return fmt::format(" because no supported kernel for {} devices is available.",
                       wanted.type.value_or("these"));
  }

  const Placer& placer_;
  const std::vector<PlacerNode>& nodes_;
  const Colocation& colocation_;
  std::optional<DeviceSpec> own_task_;
  std::vector<Candidates> found_;  // by root; empty until asked for
};

// What makes a value out of nothing goes to who reads it: a constant has no reason to be elsewhere.
bool is_generator(const PlacerNode& node) {
  return node.inputs.empty() && node.schema->outputs().size() == 1 && !node.schema->has_output_per_input() &&
         !node.schema->is_variable_storage() && !node.schema->is_contained();
}

bool follows_its_input(const PlacerNode& node) {
  return (node.schema->is_metadata() || node.schema->is_expanded_by_pass()) && !node.inputs.empty();
}

const std::string& preferred_or_first(const Candidates& candidates, const std::string& preferred) {
  for (const PlacerDevice* device : candidates)
    if (device->name == preferred) return device->name;
  return candidates.front()->name;
}

// The one device of all consumers, by node; "" where there are several or none.
std::vector<std::string> devices_of_consumers(const std::vector<PlacerNode>& nodes) {
  std::vector<std::string> devices(nodes.size());
  std::vector<bool> several(nodes.size());
  for (const PlacerNode& consumer : nodes) {
    if (consumer.constraint_only) continue;
    for (const StepValue in : consumer.inputs) {
      if (in.node < 0) continue;
      if (devices[in.node].empty()) devices[in.node] = consumer.assigned_device;
      if (devices[in.node] != consumer.assigned_device) several[in.node] = true;
    }
  }
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (several[i]) devices[i].clear();
  return devices;
}

}  // namespace

PlacerDevice PlacerDevice::named(const std::string& name) {
  const auto spec = parse_device_spec(name);
  if (!spec || !spec->is_full()) throw InvalidArgumentError("'{}' is not the full name of a device", name);
  return {name, *spec, *spec->type == "CPU" ? 60 : 210};
}

Placer::Placer(std::vector<PlacerDevice> devices, KernelTable kernels, PlacerOptions options)
    : devices_(std::move(devices)), kernels_(std::move(kernels)), options_(std::move(options)) {
  std::sort(devices_.begin(), devices_.end(),
            [](const PlacerDevice& a, const PlacerDevice& b) { return a.name < b.name; });
}

std::vector<int> Placer::place(std::vector<PlacerNode>& nodes,
                               const std::map<std::string, std::string>& group_devices) const {
  if (devices_.empty()) throw FailedPreconditionError("No devices are registered");
  Colocation colocation(*this, nodes);
  colocation.join_all(group_devices);
  Choice choice(*this, nodes, colocation);
  std::vector<int> placed, generators;
  const auto assign = [&](int node, const std::string& preferred) {
    nodes[node].assigned_device = preferred_or_first(choice.candidates(node), preferred);
    placed.push_back(node);
  };
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    const PlacerNode& node = nodes[i];
    if (!node.assigned_device.empty() || node.constraint_only) continue;
    const int input = follows_its_input(node) ? node.inputs[0].node : -1;
    if (is_generator(node)) generators.push_back(i);
    else assign(i, input >= 0 ? nodes[input].assigned_device : std::string());
  }
  const auto consumers = devices_of_consumers(nodes);
  for (const int generator : generators) assign(generator, consumers[generator]);
  return placed;
}

}  // namespace kolo
