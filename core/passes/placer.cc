#include <kolo/core/passes/placer.h>

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/passes/colocation.h>

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
         !node.schema->is_variable_storage();
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
