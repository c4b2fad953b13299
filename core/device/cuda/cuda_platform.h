// The machine's GPUs, as CUDA's driver tells of them.
#pragma once

#include <memory>
#include <string>

#include <kolo/core/device/cuda/api.h>
#include <kolo/core/device/gpu_platform.h>

namespace kolo {

/// What the driver says of itself; makes no context.
struct DriverState {
  int cuda = 0;  // the newest CUDA that it runs, as 13000
  int gpus = 0;  // after CUDA_VISIBLE_DEVICES
  /// Why none of them can be used, in half a sentence; "" where one can.
  std::string refusal = {};
};
/// GPUs are counted in the order of their slots, unless CUDA_DEVICE_ORDER says otherwise. Asked once a
/// process: later answers would be the same.
DriverState ask_driver(const CudaApi& api);

/// api outlives it. A GPU gets a context when its free memory is asked for (properties) or a device is made.
std::shared_ptr<GpuPlatform> make_cuda_platform(const CudaApi& api);

/// "GPU-…", of a GPU or of a slice of one (MIG).
std::string uuid_text(const cudaUUID_t& uuid);

}  // namespace kolo
