// A session's devices, and where its nodes and variables have gone on them.
#pragma once

#include <kolo/core/base/mutex.h>
#include <kolo/core/device/device_set.h>
#include <kolo/core/passes/place.h>
#include <kolo/core/runtime/config.h>

namespace kolo {

/// Of a session with that configuration. logs: says where nodes go.
Placer placer_of(const DeviceSet& devices, const SessionConfig& config, bool logs);

/// Any thread. Outlives the session's plans and variables: their memory comes from its devices.
class SessionDevices {
 public:
  /// Makes the devices that `config` asks for; with log_device_placement says the `Device mapping:` on stdout
  /// and in the log. Throws as make_devices.
  explicit SessionDevices(const SessionConfig& config);

  const DeviceSet& devices() const { return devices_; }
  /// Throws as kolo::place.
  void place(StepGraph& graph) KOLO_EXCLUDES(mutex_);
  /// As PlanEnvironment has it.
  bool place_elsewhere(const Node& node, const std::string& device_type) KOLO_EXCLUDES(mutex_);
  /// Where the variable is, or where it goes now if no step has needed it yet.
  Device& device_of(const Node& storage) KOLO_EXCLUDES(mutex_);

 private:
  DeviceSet devices_;
  Placer placer_;
  Mutex mutex_;
  Placements placements_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo
