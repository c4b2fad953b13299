// Says which devices and kernels a process has, and what it has mapped for them.
// Usage: device_probe [VISIBLE_DEVICE_LIST]
#include <fmt/core.h>

#include <fstream>
#include <set>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/device/device_set.h>
#include <kolo/core/kernels/kernel.h>

int main(int argc, char** argv) try {
  using namespace kolo;
  DeviceOptions options;
  if (argc > 1) options.gpu_options.visible_device_list = argv[1];
  const DeviceSet devices = make_devices(options);
  for (const auto& device : devices.devices()) fmt::print("device {}\n", device->local_name());
  std::set<std::string> types;
  for (const KernelEntry& kernel : kernels_of("Add")) types.insert(kernel.device_type);
  for (const std::string& type : types) fmt::print("kernel {}\n", type);
  try {
    RegisterKernel("Add", "GPU", {}, [](KernelContext&) {});
  } catch (const InternalError& error) {
    fmt::print("late {}\n", error.what());
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find('/') != std::string::npos) fmt::print("mapped {}\n", line.substr(line.find('/')));
} catch (const kolo::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
