#include <kolo/core/device/cuda/cuda_platform.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include <kolo/core/base/keep_for_ever.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/base/text.h>
#include <kolo/core/device/cuda/counts.h>
#include <kolo/core/device/cuda/cuda_device.h>

namespace kolo {
namespace {

constexpr std::pair<int, int> kMinimumCapability = {8, 0};  // of the oldest code in the plug-in

// "0000:3b:00.0", in small letters as TensorFlow writes it.
std::string bus_id(const CudaApi& api, int gpu) {
  char text[32] = "";
  check_cuda(api.device_get_pci_bus_id(text, sizeof text, gpu), "cudaDeviceGetPCIBusId");
  return lower_case(text);
}

class CudaPlatform final : public GpuPlatform {
 public:
  explicit CudaPlatform(const CudaApi& api) : api_(api) {
    int count = 0;
    check_cuda(api.get_device_count(&count), "cudaGetDeviceCount");
    used_.resize(static_cast<std::size_t>(count));
  }

  // Giving memory back waits for the GPU. One that hangs would hold the end of the process for ever: the
  // driver takes what it holds.
  ~CudaPlatform() override {
    for (const auto& used : used_)
      if (used && works_still(*used)) detail::keep_for_ever(used);
  }

  int count() const override { return static_cast<int>(used_.size()); }
  bool applies_environment() const override { return true; }
  std::pair<int, int> minimum_capability() const override { return kMinimumCapability; }

  GpuProperties properties(int gpu) const override {
    cudaDeviceProp found;
    check_cuda(api_.get_device_properties(&found, gpu), "cudaGetDeviceProperties");
    int memory_khz = 0;  // no longer among the properties in CUDA 13
    check_cuda(api_.device_get_attribute(&memory_khz, cudaDevAttrMemoryClockRate, gpu),
               "cudaDeviceGetAttribute");
    std::size_t free_bytes = 0, total_bytes = 0;
    make_current(api_, gpu);
    check_cuda(api_.mem_get_info(&free_bytes, &total_bytes), "cudaMemGetInfo");
    return {.name = found.name,
            .major = found.major,
            .minor = found.minor,
            .memory_clock_ghz = memory_khz / 1e6,
            .pci_bus_id = bus_id(api_, gpu),
            .uuid = uuid_text(found.uuid),
            .total_bytes = static_cast<std::int64_t>(total_bytes),
            .free_bytes = static_cast<std::int64_t>(free_bytes)};
  }

  bool can_access_peer(int gpu, int peer) const override {
    int can = 0;
    check_cuda(api_.device_can_access_peer(&can, gpu, peer), "cudaDeviceCanAccessPeer");
    return can != 0;
  }

  std::unique_ptr<Device> make_device(int gpu, const std::string& name, const GpuOptions& options) override {
    MutexLock lock(mutex_);
    auto& used = used_.at(static_cast<std::size_t>(gpu));
    if (!used) {
      used = std::make_shared<PhysicalGpu>(api_, gpu, description(gpu), options);
      for (int other = 0; other < count(); ++other)
        if (other != gpu && used_[static_cast<std::size_t>(other)]) reach(gpu, other), reach(other, gpu);
    }
    return std::make_unique<CudaDevice>(name, used);
  }

  std::optional<GpuCounts> counts() const override {
    if (!counts_calls()) return std::nullopt;
    GpuCounts counts{.launches = launch_count(),
                     .copies = api_counts().copies,
                     .syncs = api_counts().syncs,
                     .kept = api_counts().kept};
    for (const auto& gpu : used_) {
      if (!gpu) continue;
      const StepTimes times = gpu->compute.step_times();
      counts.steps += times.steps;
      counts.gpu_ms += times.milliseconds;
      counts.given = std::max(counts.given, times.given);
      counts.peak_bytes += gpu->allocator.peak_bytes();
    }
    return counts;
  }

 private:
  // Else the driver stages copies between the two in the host's memory. One that another library has enabled
  // is enabled.
  void reach(int gpu, int other) {
    if (!can_access_peer(gpu, other)) return;
    make_current(api_, gpu);
    const cudaError_t code = api_.device_enable_peer_access(other, 0);
    if (code == cudaErrorPeerAccessAlreadyEnabled) api_.get_last_error();
    else check_cuda(code, "cudaDeviceEnablePeerAccess");
  }

  std::string description(int gpu) const {
    cudaDeviceProp found;
    check_cuda(api_.get_device_properties(&found, gpu), "cudaGetDeviceProperties");
    return fmt::format("device: {}, name: {}, pci bus id: {}, compute capability: {}.{}", gpu, found.name,
                       bus_id(api_, gpu), found.major, found.minor);
  }

  bool works_still(PhysicalGpu& gpu) const noexcept {
    if (api_.set_device(gpu.gpu) != cudaSuccess) return false;
    for (CudaQueue* const queue : {&gpu.compute, &gpu.in, &gpu.out})
      if (api_.stream_query(static_cast<cudaStream_t>(queue->native())) == cudaErrorNotReady) return true;
    return false;
  }

  const CudaApi& api_;
  Mutex mutex_;
  std::vector<std::shared_ptr<PhysicalGpu>> used_;  // elements by mutex_; as many as there are GPUs
};

}  // namespace

DriverState ask_driver(const CudaApi& api) {
  // Before the driver starts. Without it CUDA would count the fastest first, unlike nvidia-smi.
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  DriverState state;
  cudaError_t code = api.driver_get_version(&state.cuda);
  if (code == cudaSuccess) {
    state.refusal = driver_too_old(state.cuda);
    if (!state.refusal.empty()) return state;
    code = api.get_device_count(&state.gpus);
  }
  if (code == cudaSuccess && state.gpus == 0) code = cudaErrorNoDevice;
  if (code != cudaSuccess) {
    state.gpus = 0;  // which an error leaves as it was
    state.refusal = describe_cuda(code);
  }
  return state;
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i)
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                        static_cast<unsigned char>(uuid.bytes[i]));
  return text;
}

std::shared_ptr<GpuPlatform> make_cuda_platform(const CudaApi& api) {
  return std::make_shared<CudaPlatform>(api);
}

}  // namespace kolo
