// Where the nodes of a master's session go, over the devices of all its tasks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/master/device_filters.h>
#include <kolo/core/cluster/worker/worker.h>
#include <kolo/core/device/device_attributes.h>
#include <kolo/core/passes/place.h>
#include <kolo/core/runtime/config.h>

namespace kolo::detail {

/// Any thread.
class SessionPlacer {
 public:
  /// tasks: what they say of themselves, by name, the own one among them; its devices are always seen, the
  /// others' as the filters of `config` have it. Throws InvalidArgumentError where some GPUs are real and
  /// some virtual.
  SessionPlacer(const std::string& own_task, const std::map<std::string, TaskStatus>& tasks,
                const SessionConfig& config);

  /// Throws as kolo::place. Returns the lines of log_device_placement for what was placed anew, which have
  /// been logged here, too.
  std::vector<std::string> place(StepGraph& graph) KOLO_EXCLUDES(mutex_);
  /// The device of a node, which is placed as a step with it alone would place it.
  std::string device_of(const Node& node) KOLO_EXCLUDES(mutex_);
  /// The device where it is, else the one that was asked for.
  std::string known_device_of(const Node& node) KOLO_EXCLUDES(mutex_);

  const std::vector<DeviceAttributes>& devices() const { return devices_; }
  std::uint64_t incarnation(const std::string& device) const;

 private:
  std::vector<DeviceAttributes> devices_;  // those seen, by name
  const Placer placer_;
  Mutex mutex_;
  Placements placements_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
