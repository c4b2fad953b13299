#include <kolo/core/device/cuda/pinned.h>

#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/device/cuda/handles.h>

namespace kolo {
namespace {

class PinnedMemorySource final : public MemorySource {
 public:
  PinnedMemorySource(const CudaApi& api, int gpu) : api_(api), gpu_(gpu) {}

  std::int64_t total_bytes() const override {
    return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  }
  std::int64_t free_bytes() const override { return total_bytes(); }

  void* reserve(std::size_t bytes) override {
    make_current(api_, gpu_);
    void* region = nullptr;
    const cudaError_t code = api_.host_alloc(&region, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
    if (code == cudaErrorMemoryAllocation) {
      api_.get_last_error();  // else the next launch would report it as its own
      return nullptr;
    }
    check_cuda(code, "cudaHostAlloc");
    return region;
  }

  // On a thread that has made none current CUDA would start the first GPU.
  void release(void* region, std::size_t) noexcept override {
    api_.set_device(gpu_);
    api_.free_host(region);
  }

 private:
  const CudaApi& api_;
  const int gpu_;
};

GpuOptions grows() {
  GpuOptions options;
  options.per_process_gpu_memory_fraction = 1;
  options.allow_growth = true;
  return options;
}

}  // namespace

PinnedAllocator::PinnedAllocator(const CudaApi& api, int gpu)
    : pinned_(fmt::format("pinned memory for GPU {}", gpu), std::make_unique<PinnedMemorySource>(api, gpu),
              grows()) {}

void* PinnedAllocator::allocate(std::size_t bytes) {
  try {
    return pinned_.allocate(bytes);
  } catch (const ResourceExhaustedError& error) {
    [[maybe_unused]] static const bool told =
        (log_warning("copies from and to GPUs use ordinary memory, for which the host waits: {}",
                     error.what()),
         true);
  }
  void* const block = cpu_allocator().allocate(bytes);
  MutexLock lock(mutex_);
  ordinary_.insert(block);
  return block;
}

void PinnedAllocator::deallocate(void* block, std::size_t bytes) noexcept {
  {
    MutexLock lock(mutex_);
    if (ordinary_.erase(block) > 0) return cpu_allocator().deallocate(block, bytes);
  }
  pinned_.deallocate(block, bytes);
}

}  // namespace kolo
