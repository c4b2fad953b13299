#include <kolo/core/passes/colocation.h>

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

namespace kolo::detail {
namespace {

constexpr char kGroupPrefix[] = "loc:@";

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

std::string Colocation::merged(const Group& a, const Group& b, Group& result) const {
  const bool soft = placer_.options().allow_soft_placement && !a.assigned && !b.assigned;
  try {
    result.spec = merge_constraints(a.spec, b.spec, soft ? Conflict::soft : Conflict::error);
  } catch (const InvalidArgumentError& error) {
    return fmt::format(": {}", error.what());
  }
  result.types = intersect(a.types, b.types, order_);
  if (result.types.empty())
    return " because no device type supports both of those nodes and the other nodes colocated with them.";
  result.assigned = a.assigned || b.assigned;
  return "";
}

std::string Colocation::join(int a, int b) {
  const int root_a = root(a), root_b = root(b);
  if (root_a == root_b) return "";
  Group both;
  if (const std::string reason = merged(groups_[root_a], groups_[root_b], both); !reason.empty())
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
    if (!skipped_[i]) join_by_names(i, group_devices);
}

void Colocation::join_by_references(int index) {
  const PlacerNode& node = nodes_[index];
  bool alone = node.assigned_device.empty();
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const int source = node.inputs[k].node;
    if (source < 0 || !node.schema->input_spec(static_cast<int>(k)).updated) continue;
    // The variable's side wins, as long as the node speaks for itself alone: what another reference edge has
    // joined it with has a say of its own.
    if (alone && !groups_[index].spec.is_compatible_with(group(source).spec)) {
      if (placer_.options().log_placement)
        log_info(
            "Ignoring device specification {} for node '{}' because the input edge from '{}' is a reference "
            "connection and already has a device field set to {}",
            groups_[index].spec.to_string(), node.name, nodes_[source].name, group(source).spec.to_string());
      groups_[index].spec = {};
    }
    alone = false;
    const std::string reason = join(source, index);
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
  const auto join_group = [&](const std::string& name) {
    const auto [first, is_new] = by_name_.emplace(name, index);
    const auto before = is_new ? group_devices.find(name) : group_devices.end();
    if (is_new && before == group_devices.end()) return;
    const std::string reason = is_new ? restrict_to(index, before->second) : join(index, first->second);
    if (reason.empty() || node.constraint_only) return;
    if (!placer_.options().allow_soft_placement) refuse(index, Code::invalid_argument, reason);
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
  const std::string reason = merged(placed, own, both);
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
  for (const auto& [op, types] : types_of_ops) text += "\n" + op + ": " + types;
  return text + "\n";
}

}  // namespace kolo::detail
