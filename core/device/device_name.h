// Device names such as /job:worker/replica:0/task:1/device:GPU:2, whole or in part.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kolo {

/// A field that is not set matches everything.
struct DeviceSpec {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  // "CPU", "GPU"
  std::optional<int> index;

  bool operator==(const DeviceSpec&) const = default;
  /// True if every field that is set here has the same value in `device`.
  bool matches(const DeviceSpec& device) const;
  /// Canonical form, fields in the order job, replica, task, device; a type without index prints
  /// `/device:GPU:*`.
  std::string to_string() const;
};

/// Fields in any order, repeated ones allowed (the last wins), `*` leaves a field unset, "" and "/" are the
/// empty spec.
/// `/cpu:0` and `/gpu:*` are read as CPU and GPU; `/device:gpu:0` keeps its case. Nothing if the text is
/// malformed.
std::optional<DeviceSpec> parse_device_spec(std::string_view text);

/// Scope merge: for each field the inner value if it is set, else the outer.
DeviceSpec merge_scopes(const DeviceSpec& outer, const DeviceSpec& inner);

/// The full name of this process's device: /job:localhost/replica:0/task:0/device:CPU:0.
std::string local_device_name(std::string_view type, int index);

}  // namespace kolo
