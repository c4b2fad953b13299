// One GPU as the device of a session.
#pragma once

#include <memory>
#include <string>

#include <kolo/core/base/mutex.h>
#include <kolo/core/device/cuda/event_thread.h>
#include <kolo/core/device/cuda/gpu_libraries.h>
#include <kolo/core/device/device.h>
#include <kolo/core/device/device_allocator.h>
#include <kolo/core/device/stream.h>

namespace kolo {

/// The stream of a GPU on which all its work is put: kernels and copies, in the order in which they are
/// given.
class CudaQueue final : public Stream {
 public:
  /// With its GPU's context. api outlives it.
  CudaQueue(const CudaApi& api, int gpu, std::shared_ptr<EventThread> events);

  void enqueue(std::function<void()> work) override KOLO_EXCLUDES(mutex_);
  void when_done(Done done) override;
  void* native() const override { return stream_.get(); }
  /// What is enqueued from now on comes behind what `other`, perhaps of another GPU, has been given so far.
  void wait_for(CudaQueue& other);

 private:
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
  CudaQueue queue;
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
  Stream* stream() override { return &gpu_->queue; }
  bool runs_cpu_kernels() const override { return false; }
  /// Memory of the host that is not pinned makes the caller wait while it is staged.
  void copy_from(Device& from, const Tensor& source, const Tensor& target, CopyDone done) override;
  void copy_to_host(const Tensor& source, const Tensor& target, CopyDone done) override;

 private:
  template <typename Copy>
  void copy(std::size_t bytes, const Copy& copy, const CopyDone& done);

  const std::shared_ptr<PhysicalGpu> gpu_;
  const bool allow_tf32_;
};

}  // namespace kolo
