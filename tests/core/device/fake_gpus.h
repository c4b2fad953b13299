// GPUs whose properties a test makes up; their devices are virtual.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/device/gpu_platform.h>

namespace kolo::testing {

class FakeGpus : public GpuPlatform {
 public:
  explicit FakeGpus(std::vector<GpuProperties> gpus, std::pair<int, int> minimum = {0, 0})
      : gpus_(std::move(gpus)),
        minimum_(minimum),
        virtual_(make_virtual_gpu_platform(std::vector<VirtualGpu>(gpus_.size()))) {}
  static GpuProperties k80(int gpu, int major = 3, int minor = 7) {
    return {.name = "Tesla K80",
            .major = major,
            .minor = minor,
            .memory_clock_ghz = 0.8235,
            .pci_bus_id = "0000:00:1" + std::to_string(gpu) + ".0",
            .total_bytes = std::int64_t{4} << 30,
            .free_bytes = std::int64_t{3} << 30};
  }
  int count() const override { return static_cast<int>(gpus_.size()); }
  GpuProperties properties(int gpu) const override { return gpus_.at(static_cast<std::size_t>(gpu)); }
  // Two neighbours share a switch.
  bool can_access_peer(int gpu, int peer) const override { return gpu / 2 == peer / 2; }
  std::pair<int, int> minimum_capability() const override { return minimum_; }
  std::unique_ptr<Device> make_device(int gpu, const std::string& name, const GpuOptions& options) override {
    return virtual_->make_device(gpu, name, options);
  }

 private:
  std::vector<GpuProperties> gpus_;
  std::pair<int, int> minimum_;
  std::shared_ptr<GpuPlatform> virtual_;
};

/// Sets an environment variable for the length of a test.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~EnvironmentVariable() { unsetenv(name_); }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const char* name_;
};

}  // namespace kolo::testing
