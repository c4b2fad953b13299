// A GPU made of the host's memory and a thread: what a machine without GPUs tests device placement on.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/device/device_allocator.h>
#include <kolo/core/device/gpu_platform.h>

namespace kolo {
namespace {

std::string bus_id(int gpu) { return fmt::format("0000:{:02x}:00.0", gpu); }

// One range of addresses for each GPU. The host gives pages to it as they are written.
class VirtualGpuMemory final : public MemorySource {
 public:
  explicit VirtualGpuMemory(const VirtualGpu& gpu)
      : total_(gpu.total_bytes), free_(gpu.free_bytes < 0 ? total_ : std::min(gpu.free_bytes, total_)) {}
  ~VirtualGpuMemory() override {
    if (base_ != nullptr) munmap(base_, static_cast<std::size_t>(total_));
  }

  std::int64_t total_bytes() const override { return total_; }
  std::int64_t free_bytes() const override { return free_; }

  void* reserve(std::size_t bytes) override {
    if (static_cast<std::int64_t>(bytes) > free_) return nullptr;
    if (base_ == nullptr) {
      void* range = mmap(nullptr, static_cast<std::size_t>(total_), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (range == MAP_FAILED) return nullptr;
      base_ = static_cast<std::byte*>(range);
    }
    void* region = base_ + taken_;
    taken_ += bytes;
    free_ -= static_cast<std::int64_t>(bytes);
    return region;
  }

  // Regions go back at the end alone, with the whole range.
  void release(void*, std::size_t bytes) noexcept override { free_ += static_cast<std::int64_t>(bytes); }

 private:
  const std::int64_t total_;
  std::int64_t free_;
  std::byte* base_ = nullptr;
  std::size_t taken_ = 0;
};

/// What sessions share of one GPU: its memory, its queue of kernels and its queue of copies.
struct PhysicalGpu {
  PhysicalGpu(int number, const VirtualGpu& properties, const GpuOptions& options)
      : virtual_gpu(properties),
        allocator(fmt::format("virtual GPU {}", number), std::make_unique<VirtualGpuMemory>(properties),
                  options),
        copies(make_thread_stream(fmt::format("kolo-copy{}", number))),
        kernels(make_thread_stream(fmt::format("kolo-gpu{}", number))) {}
  VirtualGpu virtual_gpu;
  DeviceAllocator allocator;
  std::unique_ptr<Stream> copies;
  std::unique_ptr<Stream> kernels;  // hands on to `copies`
};

class VirtualGpuDevice final : public Device {
 public:
  VirtualGpuDevice(const std::string& name, int number, std::shared_ptr<PhysicalGpu> gpu)
      : Device(name, kGpuPriority), number_(number), gpu_(std::move(gpu)) {}

  std::string physical_description() const override {
    return fmt::format("device: {}, name: virtual GPU, pci bus id: {}", number_, bus_id(number_));
  }
  Allocator& allocator() override { return gpu_->allocator; }
  // The kernels could read the host's memory; that they do not is what a virtual GPU is for.
  bool has_host_memory() const override { return false; }
  Stream* stream() override { return gpu_->kernels.get(); }
  bool runs_cpu_kernels() const override { return true; }

  // The kernels that wrote the source, and those that read what the target's memory held, come first. Later
  // ones do not wait for the copy.
  void copy_from(Device& from, const Tensor& source, const Tensor& target, CopyDone done) override {
    if (from.stream() == nullptr || from.stream() == stream())
      return copy_to_host(source, target, std::move(done));
    from.stream()->enqueue(
        [this, &source, &target, done = std::move(done)] { copy_to_host(source, target, done); });
  }
  void copy_to_host(const Tensor& source, const Tensor& target, CopyDone done) override {
    gpu_->kernels->enqueue([this, &source, &target, done = std::move(done)] { copy(source, target, done); });
  }

 private:
  void copy(const Tensor& source, const Tensor& target, const CopyDone& done) {
    gpu_->copies->enqueue([this, &source, &target, done] {
      const auto start = std::chrono::steady_clock::now();
      std::exception_ptr error;
      try {
        target.copy_from(source);
        wait_for_the_bus(start, source.bytes());
      } catch (...) {
        error = std::current_exception();
      }
      done(error);
    });
  }

  // The pretended bus is the only thing waited for: there is nobody to be notified by.
  void wait_for_the_bus(std::chrono::steady_clock::time_point start, std::size_t bytes) const {
    const VirtualGpu& bus = gpu_->virtual_gpu;
    std::chrono::duration<double> cost = bus.transfer_latency;
    if (bus.transfer_bytes_per_second > 0)
      cost += std::chrono::duration<double>(static_cast<double>(bytes) / bus.transfer_bytes_per_second);
    if (cost.count() > 0)
      std::this_thread::sleep_until(start +
                                    std::chrono::duration_cast<std::chrono::steady_clock::duration>(cost));
  }

  const int number_;
  const std::shared_ptr<PhysicalGpu> gpu_;
};

class VirtualGpuPlatform final : public GpuPlatform {
 public:
  explicit VirtualGpuPlatform(std::vector<VirtualGpu> gpus) : gpus_(std::move(gpus)), used_(gpus_.size()) {
    for (const VirtualGpu& gpu : gpus_)
      if (gpu.total_bytes <= 0)
        throw InvalidArgumentError("a virtual GPU has {} bytes; it must have at least 1", gpu.total_bytes);
  }

  int count() const override { return static_cast<int>(gpus_.size()); }
  GpuProperties properties(int gpu) const override {
    const VirtualGpuMemory memory(gpus_.at(gpu));
    return {.name = "virtual GPU",
            .major = 0,
            .minor = 0,
            .memory_clock_ghz = 0,
            .pci_bus_id = bus_id(gpu),
            .total_bytes = memory.total_bytes(),
            .free_bytes = memory.free_bytes()};
  }
  bool can_access_peer(int, int) const override { return true; }

  std::unique_ptr<Device> make_device(int gpu, const std::string& name, const GpuOptions& options) override {
    MutexLock lock(mutex_);
    auto& used = used_.at(gpu);
    if (!used) used = std::make_shared<PhysicalGpu>(gpu, gpus_[gpu], options);
    return std::make_unique<VirtualGpuDevice>(name, gpu, used);
  }

 private:
  const std::vector<VirtualGpu> gpus_;
  Mutex mutex_;
  std::vector<std::shared_ptr<PhysicalGpu>> used_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<GpuPlatform> make_virtual_gpu_platform(std::vector<VirtualGpu> gpus) {
  return std::make_shared<VirtualGpuPlatform>(std::move(gpus));
}

}  // namespace kolo
