// One GPU as the device of a session.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <kolo/core/base/mutex.h>
#include <kolo/core/device/cuda/event_thread.h>
#include <kolo/core/device/cuda/gpu_libraries.h>
#include <kolo/core/device/device.h>
#include <kolo/core/device/device_allocator.h>
#include <kolo/core/device/stream.h>

namespace kolo {

/// One of a GPU's streams.
class CudaQueue final : public Stream {
 public:
  /// With its GPU's context. api outlives it.
  CudaQueue(const CudaApi& api, int gpu, const std::string& kind, std::shared_ptr<EventThread> events);

  void enqueue(std::function<void()> work) override KOLO_EXCLUDES(mutex_);
  void check() override;
  void* native() const override { return stream_.get(); }
  std::unique_ptr<StreamEvent> make_event() override;

 private:
  void put_end(Done done) override;
  void put_record(StreamEvent& event) override;
  void put_wait(StreamEvent& event) override;

  const CudaApi& api_;
  const int gpu_;
  const std::shared_ptr<EventThread> events_;
  const CudaStream stream_;
  Mutex mutex_;  // cuDNN's handle is not for two threads at a time
};

/// What sessions share of one GPU. Made with its context.
struct PhysicalGpu {
  /// gpu: as CUDA counts, after CUDA_VISIBLE_DEVICES. Throws as check_cuda and memory_limit.
  PhysicalGpu(const CudaApi& api, int gpu, std::string description, std::shared_ptr<EventThread> events,
              const GpuOptions& options);

  const CudaApi& api;
  const int gpu;
  const std::string description;
  CudaQueue compute, in, out;
  DeviceAllocator allocator;
  GpuLibraries libraries;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(const std::string& name, std::shared_ptr<PhysicalGpu> gpu, bool allow_tf32)
      : Device(name, kGpuPriority), gpu_(std::move(gpu)), allow_tf32_(allow_tf32) {}

  PhysicalGpu& physical() const { return *gpu_; }
  const std::shared_ptr<PhysicalGpu>& shared() const { return gpu_; }
  /// Of the session: see GpuOptions.
  bool allow_tf32() const { return allow_tf32_; }
  std::string physical_description() const override { return gpu_->description; }
  Allocator& allocator() override { return gpu_->allocator; }
  bool has_host_memory() const override { return false; }
  Stream* stream(StreamKind kind) override;
  bool runs_cpu_kernels() const override { return false; }
  /// Memory of the host that is not pinned makes the caller wait while it is staged.
  void copy_from(Device& from, const Tensor& source, const Tensor& target) override;
  void copy_to_host(const Tensor& source, const Tensor& target) override;

 private:
  const std::shared_ptr<PhysicalGpu> gpu_;
  const bool allow_tf32_;
};

}  // namespace kolo
