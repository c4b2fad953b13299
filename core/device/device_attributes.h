// What is known of a device from outside of its process.
#pragma once

#include <cstdint>
#include <string>

namespace kolo {

/// A device of a session, as Session::list_devices gives it.
struct DeviceAttributes {
  std::string name;               // full: /job:ps/replica:0/task:1/device:CPU:0
  std::string type;               // CPU, GPU
  std::uint64_t incarnation = 0;  // drawn when its server started; 0: of a local session
  std::string description =
      {};  // of the hardware: `device: 0, name: …, pci bus id: …`; "" where there is none
  bool is_virtual = false;  // a GPU that runs the CPU's kernels
  bool operator==(const DeviceAttributes&) const = default;
};

}  // namespace kolo
