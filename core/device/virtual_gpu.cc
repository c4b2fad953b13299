// A GPU made of the host's memory and threads: what a machine without GPUs tests device placement on.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
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

// One range of addresses for each GPU, without rights: a host that reads or writes there ends as it would by
// a real GPU's addresses. Two more ranges see the same memory, one of them for reading alone. The host gives
// pages to it as they are written.
class VirtualGpuMemory final : public MemorySource {
 public:
  explicit VirtualGpuMemory(const VirtualGpu& gpu)
      : total_(gpu.total_bytes), free_(gpu.free_bytes < 0 ? total_ : std::min(gpu.free_bytes, total_)) {}
  ~VirtualGpuMemory() override {
    for (std::byte* const range : {base_, readable_, writable_})
      if (range != nullptr) munmap(range, static_cast<std::size_t>(total_));
  }

  std::int64_t total_bytes() const override { return total_; }
  std::int64_t free_bytes() const override { return free_; }

  void* reserve(std::size_t bytes) override {
    if (static_cast<std::int64_t>(bytes) > free_ || (base_ == nullptr && !map())) return nullptr;
    void* region = base_ + taken_;
    taken_ += bytes;
    free_ -= static_cast<std::int64_t>(bytes);
    return region;
  }

  // Regions go back at the end alone, with the whole range.
  void release(void*, std::size_t bytes) noexcept override { free_ += static_cast<std::int64_t>(bytes); }

  // Of memory that has been reserved.
  std::byte* alias(const void* address, std::size_t bytes, bool writable) const {
    const auto offset = static_cast<const std::byte*>(address) - base_;
    if (base_ == nullptr || offset < 0 || offset + static_cast<std::int64_t>(bytes) > total_) return nullptr;
    return (writable ? writable_ : readable_) + offset;
  }

 private:
  bool map() {
    const auto bytes = static_cast<std::size_t>(total_);
    const int file = memfd_create("virtual GPU", MFD_CLOEXEC);
    if (file < 0) return false;
    const auto range = [&](int rights) -> std::byte* {
      void* const mapped = mmap(nullptr, bytes, rights, MAP_SHARED | MAP_NORESERVE, file, 0);
      return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
    };
    if (ftruncate(file, total_) == 0) {
      base_ = range(PROT_NONE);
      readable_ = range(PROT_READ);
      writable_ = range(PROT_READ | PROT_WRITE);
    }
    close(file);
    return base_ != nullptr && readable_ != nullptr && writable_ != nullptr;
  }

  const std::int64_t total_;
  std::int64_t free_;
  std::byte *base_ = nullptr, *readable_ = nullptr, *writable_ = nullptr;
  std::size_t taken_ = 0;
};

/// What sessions share of one GPU: its memory and its queues.
struct PhysicalGpu {
  PhysicalGpu(int number, const VirtualGpu& properties, const GpuOptions& options)
      : PhysicalGpu(number, properties, options, std::make_unique<VirtualGpuMemory>(properties)) {}
  PhysicalGpu(int number, const VirtualGpu& properties, const GpuOptions& options,
              std::unique_ptr<VirtualGpuMemory> source)
      : virtual_gpu(properties),
        memory(*source),
        allocator(fmt::format("virtual GPU {}", number), std::move(source), options) {
    for (const char* kind : {"compute", "in", "out"})
      streams.push_back(
          make_thread_stream(fmt::format("GPU {} {}", number, kind), fmt::format("kolo-{}{}", kind, number),
                             properties.delay_seed == 0 ? 0 : properties.delay_seed + streams.size()));
  }
  VirtualGpu virtual_gpu;
  const VirtualGpuMemory& memory;  // the allocator's
  DeviceAllocator allocator;
  std::vector<std::unique_ptr<Stream>> streams;  // by kind
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
  Stream* stream(StreamKind kind) override { return gpu_->streams.at(static_cast<std::size_t>(kind)).get(); }
  bool runs_cpu_kernels() const override { return true; }

  std::byte* alias(const void* address, std::size_t bytes, bool writable) override {
    return gpu_->memory.alias(address, bytes, writable);
  }

  void copy_from(Device& from, const Tensor& source, const Tensor& target) override {
    const std::byte* const sent = from.alias(source.raw(), source.bytes(), false);
    copy(sent != nullptr ? sent : source.raw(), alias(target.raw(), target.bytes(), true), source.bytes());
  }
  void copy_to_host(const Tensor& source, const Tensor& target) override {
    copy(alias(source.raw(), source.bytes(), false), target.raw(), source.bytes());
  }

 private:
  void copy(const std::byte* source, std::byte* target, std::size_t bytes) const {
    if (bytes == 0) return;
    if (source == nullptr || target == nullptr)
      throw InternalError("a copy of {} bytes to or from {} has an end that is not its memory", bytes,
                          name());
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(target, source, bytes);
    wait_for_the_bus(start, bytes);
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
