// Device names such as /job:worker/replica:0/task:1/device:GPU:2, whole or in part.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kolo {

/// A field that is not set matches everything.
struct DeviceSpec {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  // "CPU", "GPU"
  std::optional<int> index;

  bool operator==(const DeviceSpec&) const = default;
  bool is_empty() const { return *this == DeviceSpec(); }
  /// All five fields are set: the name of one device.
  bool is_full() const { return job && replica && task && type && index; }
  /// True if every field that is set here has the same value in `device`.
  bool matches(const DeviceSpec& device) const;
  /// True unless a field that both set differs.
  bool is_compatible_with(const DeviceSpec& other) const;
  /// True if job, replica and task are equal: two devices of one process.
  bool shares_address_space_with(const DeviceSpec& other) const;
  /// Canonical form, fields in the order job, replica, task, device; a type without index prints
  /// `/device:GPU:*`, an index without type is not printed.
  std::string to_string() const;
};

/// Fields in any order, repeated ones allowed (the last wins), `*` leaves a field unset, "" and "/" are the
/// empty spec.
/// `/cpu:0` and `/gpu:*` are read as CPU and GPU; `/device:gpu:0` keeps its case. Nothing if the text is
/// malformed.
std::optional<DeviceSpec> parse_device_spec(std::string_view text);
/// The local form, `GPU:1`: type and index alone. Nothing if the text is malformed.
std::optional<DeviceSpec> parse_local_device_name(std::string_view text);
/// What users write in device scopes: one device component only, no unknown keys; a bare cpu or gpu has no
/// index, and cpu and gpu are read in either case everywhere. Throws InvalidArgumentError `Cannot specify
/// multiple device types: <spec>`, `Unknown attribute: '<k>' in '<spec>'` or `Malformed device specification
/// '<spec>'`.
DeviceSpec parse_scope_device(std::string_view text);

/// `name`, in whole, in part or in local form, with what it leaves open taken from `base`.
/// Throws InvalidArgumentError `Basename: <base> should be fully specified.` and `Could not parse <name> into
/// a device specification.`
std::string complete_device_name(std::string_view name, std::string_view base);
/// The names under which a full device is found among all jobs: its own and the old `…/gpu:1`.
std::vector<std::string> lookup_names(const DeviceSpec& device);
/// Those under which its own process finds it: `/device:GPU:1` and `GPU:1`.
std::vector<std::string> local_lookup_names(const DeviceSpec& device);

/// Scope merge: for each field the inner value if it is set, else the outer.
DeviceSpec merge_scopes(const DeviceSpec& outer, const DeviceSpec& inner);

enum class Conflict {
  error,     // whatever differs is an error
  soft,      // another type clears type and index, another index the index
  override,  // the other side's type and index win
};
/// Constraint merge: what both `a` and `b` ask for.
/// Throws InvalidArgumentError `Cannot merge devices with incompatible jobs: '<a>' and '<b>'`, or `replicas`,
/// `tasks`, `types`, `ids`; of these, on_conflict forgives the last two.
DeviceSpec merge_constraints(const DeviceSpec& a, const DeviceSpec& b,
                             Conflict on_conflict = Conflict::error);

/// The full name of this process's device: /job:localhost/replica:0/task:0/device:CPU:0.
std::string local_device_name(std::string_view type, int index);

}  // namespace kolo
