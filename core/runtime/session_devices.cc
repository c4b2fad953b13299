#include <kolo/core/runtime/session_devices.h>

#include <cstdio>
#include <utility>
#include <vector>

#include <kolo/core/base/log.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/passes/prune.h>

namespace kolo {
namespace {

DeviceSet devices_of(const SessionConfig& config) {
  DeviceOptions options;
  options.device_count = config.device_count;
  options.virtual_gpus = config.virtual_gpus;
  options.gpu_options = config.gpu_options;
  options.device_filters = config.device_filters;
  return make_devices(options);
}

}  // namespace

Placer placer_of(const DeviceSet& devices, const SessionConfig& config, bool logs) {
  std::vector<PlacerDevice> list;
  for (const auto& device : devices.devices())
    list.push_back({device->name(), device->spec(), device->priority()});
  return Placer(std::move(list), registered_kernel_table(devices.gpus_run_cpu_kernels()),
                {.allow_soft_placement = config.allow_soft_placement,
                 .log_placement = logs,
                 .default_device = devices.host() != nullptr ? devices.host()->name() : ""});
}

SessionDevices::SessionDevices(const SessionConfig& config)
    : devices_(devices_of(config)), placer_(placer_of(devices_, config, config.log_device_placement)) {
  if (!config.log_device_placement) return;
  const std::string mapping = devices_.mapping();
  std::printf("%s\n", mapping.c_str());
  std::fflush(stdout);
  log_info("{}", mapping);
}

void SessionDevices::place(StepGraph& graph) {
  MutexLock lock(mutex_);
  kolo::place(graph, placer_, placements_);
}

// A request for a type of device is heeded to the letter unless placement is soft.
bool SessionDevices::place_elsewhere(const Node& node, const std::string& device_type) {
  const auto asked = parse_device_spec(node.requested_device());
  if (!placer_.options().allow_soft_placement && asked && asked->type) return false;
  MutexLock lock(mutex_);
  return placements_.refuse(node, device_type);
}

Device& SessionDevices::device_of(const Node& storage) {
  StepGraph alone = prune({.fetched = {Output()}, .targets = {&storage}, .fed = {}});
  place(alone);
  return devices_.find(alone.nodes[0].device);
}

}  // namespace kolo
