// The devices that a session sees.
#pragma once

#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/core/device/device.h>
#include <kolo/core/device/gpu_platform.h>

namespace kolo {

/// Does not change once it is made. Any thread.
class DeviceSet {
 public:
  explicit DeviceSet(std::vector<std::unique_ptr<Device>> devices)
      : devices_(std::make_move_iterator(devices.begin()), std::make_move_iterator(devices.end())) {}

  const std::vector<std::shared_ptr<Device>>& devices() const { return devices_; }
  /// By full name, old full name (…/gpu:1), `/device:GPU:1` or `GPU:1`. Throws InvalidArgumentError `<name>
  /// unknown device.`
  Device& find(std::string_view name) const;
  /// The first CPU: where fed and fetched values lie. nullptr if there is none.
  Device* host() const { return first_of("CPU"); }
  /// The GPU in whose memory the value lies; nullptr where that is the host's.
  Device* holder_of(const Tensor& value) const;
  /// `Device mapping:` with a line `<device> -> device: <i>, name: <n>, pci bus id: <id>` for each device
  /// that has a physical description; `Device mapping: no known devices.` where none has.
  std::string mapping() const;
  /// Of all GPUs, which are of one kind; false where there is none.
  bool gpus_run_cpu_kernels() const;

 private:
  Device* first_of(std::string_view type) const;
  std::vector<std::shared_ptr<Device>> devices_;
};

/// CPUs 0 … device_count["CPU"] − 1, and the GPUs of `platform` (may be null) that the environment,
/// visible_device_list and device_count leave; minus what device_filters hide. Logs what it finds, once for
/// each platform. Throws NotFoundError `No CPU devices are available in this process`, InvalidArgumentError
/// for options that cannot be.
DeviceSet make_devices(const DeviceOptions& options, const std::shared_ptr<GpuPlatform>& platform);
/// With gpu_platform(options).
DeviceSet make_devices(const DeviceOptions& options);

}  // namespace kolo
