#include <kolo/core/cluster/master/session_placer.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/passes/prune.h>

namespace kolo::detail {
namespace {

std::vector<DeviceAttributes> seen_devices(const std::string& own_task,
                                           const std::map<std::string, TaskStatus>& tasks,
                                           const SessionConfig& config) {
  const DeviceFilters filters(config.device_filters);
  std::vector<DeviceAttributes> seen;
  for (const auto& [task, status] : tasks)
    for (const DeviceAttributes& device : status.devices)
      if (task == own_task || filters.pass_device(device.name)) seen.push_back(device);
  std::sort(seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return seen;
}

bool gpus_are_virtual(const std::vector<DeviceAttributes>& devices) {
  const DeviceAttributes* real = nullptr;
  const DeviceAttributes* made_up = nullptr;
  for (const DeviceAttributes& device : devices)
    if (device.type == "GPU") (device.is_virtual ? made_up : real) = &device;
  if (real != nullptr && made_up != nullptr)
    throw InvalidArgumentError("{} is a real GPU and {} a virtual one; a session's GPUs are all of one kind",
                               real->name, made_up->name);
  return made_up != nullptr;
}

Placer placer_of(const std::string& own_task, const std::vector<DeviceAttributes>& devices,
                 const SessionConfig& config) {
  std::vector<PlacerDevice> list;
  for (const DeviceAttributes& device : devices) list.push_back(PlacerDevice::named(device.name));
  return Placer(std::move(list), registered_kernel_table(gpus_are_virtual(devices)),
                {.allow_soft_placement = config.allow_soft_placement,
                 .log_placement = config.log_device_placement,
                 .default_device = own_task + "/device:CPU:0"});
}

}  // namespace

SessionPlacer::SessionPlacer(const std::string& own_task, const std::map<std::string, TaskStatus>& tasks,
                             const SessionConfig& config)
    : devices_(seen_devices(own_task, tasks, config)), placer_(placer_of(own_task, devices_, config)) {}

std::vector<std::string> SessionPlacer::place(StepGraph& graph) {
  MutexLock lock(mutex_);
  std::vector<std::size_t> fresh;
  if (placer_.options().log_placement)
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      if (graph.nodes[i].origin != nullptr && placements_.find(*graph.nodes[i].origin) == nullptr)
        fresh.push_back(i);
  kolo::place(graph, placer_, placements_);
  std::vector<std::string> lines;
  for (const std::size_t i : fresh) {
    const StepNode& node = graph.nodes[i];
    lines.push_back(fmt::format("{}: ({}): {}", node.name, node.schema->name(), node.device));
  }
  return lines;
}

std::string SessionPlacer::device_of(const Node& node) {
  {
    MutexLock lock(mutex_);
    if (const std::string* device = placements_.find(node)) return *device;
  }
  StepGraph alone = prune({.fetched = {Output()}, .targets = {&node}, .fed = {}});
  place(alone);
  for (const StepNode& placed : alone.nodes)
    if (placed.origin == &node) return placed.device;
  throw InternalError("node \"{}\" has no place", node.name());
}

std::string SessionPlacer::known_device_of(const Node& node) {
  MutexLock lock(mutex_);
  const std::string* device = placements_.find(node);
  return device != nullptr ? *device : node.requested_device();
}

std::uint64_t SessionPlacer::incarnation(const std::string& device) const {
  for (const DeviceAttributes& known : devices_)
    if (known.name == device) return known.incarnation;
  throw InternalError("{} is no device of this session", device);
}

}  // namespace kolo::detail
