// Where GPUs come from: what a driver, or the pretence of one, tells of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/device/device.h>
#include <kolo/core/device/device_options.h>

namespace kolo {

struct GpuProperties {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  double memory_clock_ghz = 0;
  std::string pci_bus_id;  // that of its GPU, where it is a slice of one (MIG)
  std::string uuid = {};   // of the GPU or the slice; "" for a virtual one
  std::int64_t total_bytes = 0;
  std::int64_t free_bytes = 0;
};

/// What the process has asked of its GPUs since it began.
struct GpuCounts {
  std::int64_t launches = 0;  // of kernels and graphs; a call of cuBLASLt or cuDNN is one
  std::int64_t copies = 0;    // clears among them
  std::int64_t syncs =
      0;                  // how often the host waited: for an end, or for a copy to memory that is not pinned
  std::int64_t kept = 0;  // pieces of work in graphs
  std::int64_t peak_bytes = 0;  // of the allocators
  std::int64_t steps = 0;       // that have ended, and how long the GPUs computed in all of them together
  double gpu_ms = 0;
  std::chrono::steady_clock::time_point given = {};  // when a step's last work stood in its stream
};

/// The GPUs of this machine, counted from 0. One thread at a time.
class GpuPlatform {
 public:
  virtual ~GpuPlatform() = default;
  virtual int count() const = 0;
  /// Whether those that CUDA_VISIBLE_DEVICES hides are not counted: CUDA itself has then applied it.
  virtual bool applies_environment() const { return false; }
  virtual GpuProperties properties(int gpu) const = 0;
  virtual bool can_access_peer(int gpu, int peer) const = 0;
  /// nullopt where nobody counts: without KOLO_CUDA_COUNT=1.
  virtual std::optional<GpuCounts> counts() const { return std::nullopt; }
  /// Smaller compute capabilities are ignored.
  virtual std::pair<int, int> minimum_capability() const { return {0, 0}; }
  /// name: full. The platform may give two sessions' devices of one GPU the same memory.
  virtual std::unique_ptr<Device> make_device(int gpu, const std::string& name,
                                              const GpuOptions& options) = 0;
};

/// That of options.virtual_gpus; else of KOLO_VIRTUAL_GPUS, the same for the whole process; else that of the
/// plug-in (plugin.h), which has at least one GPU; else nullptr. Throws InvalidArgumentError if
/// KOLO_VIRTUAL_GPUS is malformed.
std::shared_ptr<GpuPlatform> gpu_platform(const DeviceOptions& options);

/// The GPUs that CUDA_VISIBLE_DEVICES leaves of `count`, in its order: all if it is unset, none if it is
/// empty; what is no GPU's number ends the list.
std::vector<int> gpus_of_environment(int count);
/// Those of the platform that a session may see: all where it applies the environment itself.
std::vector<int> visible_gpus(const GpuPlatform& platform);
/// Positions in the above for GPU:0, GPU:1, …; all of `count` for "". Throws InvalidArgumentError `Could not
/// parse entry in 'visible_device_list': '<x>'`, `'visible_device_list' listed an invalid GPU id '<n>' but
/// visible device count is <m>` and `visible_device_list contained a duplicate entry: <list>`.
std::vector<int> parse_visible_device_list(const std::string& list, int count);

/// KOLO_VIRTUAL_GPUS: "8", or "4x2GiB" (MiB and bytes as well); none if it is unset or 0. Throws
/// InvalidArgumentError if it is neither.
std::vector<VirtualGpu> virtual_gpus_of_environment();
/// Host memory and threads that behave as GPUs do.
std::shared_ptr<GpuPlatform> make_virtual_gpu_platform(std::vector<VirtualGpu> gpus);

/// The lines with which TensorFlow 1 reports what it has found, once for each platform and GPU: `Found device
/// <i> with properties: `, `DMA: 0 1 `. gpus: the visible ones in their order.
void log_gpus(const GpuPlatform& platform, const std::vector<int>& gpus);

}  // namespace kolo
