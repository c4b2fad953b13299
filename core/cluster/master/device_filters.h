// What a session's device_filters let it see of a cluster.
#pragma once

#include <string>
#include <vector>

#include <kolo/core/device/device_name.h>

namespace kolo::detail {

/// Const: any thread.
class DeviceFilters {
 public:
  /// Partial device names; none: everything passes. Throws InvalidArgumentError `Malformed device filter
  /// '<f>'`.
  explicit DeviceFilters(const std::vector<std::string>& filters);

  /// Whether a device of the task may pass: job and index contradict no field of at least one filter.
  bool pass_task(const std::string& task) const;
  bool pass_device(const std::string& device) const;

 private:
  std::vector<DeviceSpec> filters_;
};

}  // namespace kolo::detail
