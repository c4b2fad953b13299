// One GPU as the device of a session.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <kolo/core/base/mutex.h>
#include <kolo/core/device/cuda/event_thread.h>
#include <kolo/core/device/cuda/gpu_libraries.h>
#include <kolo/core/device/cuda/pinned.h>
#include <kolo/core/device/cuda/staged_copies.h>
#include <kolo/core/device/device.h>
#include <kolo/core/device/device_allocator.h>
#include <kolo/core/device/stream.h>

namespace kolo {

/// Of a stream's steps so far.
struct StepTimes {
  std::int64_t steps = 0;
  double milliseconds = 0;                           // of all together
  std::chrono::steady_clock::time_point given = {};  // when the last one's end was looked for first
};

/// How long a stream's steps take, by events around them; a step's are asked when the next has ended, so that
/// nobody waits. Only where counts_calls(). One thread at a time.
class StepClock {
 public:
  explicit StepClock(const CudaApi& api) : api_(api) {}
  /// The stream is given something; or the end of what it was given is looked for: begins, or ends, a step.
  void given(cudaStream_t stream);
  void looked_for(cudaStream_t stream);

  const StepTimes& times() const { return times_; }

 private:
  struct Step {
    CudaEvent begin, end;
  };
  const CudaApi& api_;
  std::array<std::optional<Step>, 2> last_;  // in turns
  std::size_t turn_ = 0;
  bool is_open_ = false;
  StepTimes times_;
};

/// One of a GPU's streams.
class CudaQueue final : public Stream {
 public:
  /// With its GPU's context. api outlives it.
  CudaQueue(const CudaApi& api, int gpu, const std::string& kind);

  void enqueue(std::function<void()> work) override KOLO_EXCLUDES(mutex_);
  void check() override;
  void* native() const override { return stream_.get(); }
  std::unique_ptr<StreamEvent> make_event() override;
  std::unique_ptr<StreamGraph> capture(std::function<void(void* native)> put) override KOLO_EXCLUDES(mutex_);
  /// Where counts_calls().
  StepTimes step_times() KOLO_EXCLUDES(mutex_);

 private:
  void put_end(Done done) override;
  void put_record(StreamEvent& event) override;
  void put_wait(StreamEvent& event) override;
  bool try_done(StreamEvent& event) override KOLO_EXCLUDES(mutex_);

  const CudaApi& api_;
  const int gpu_;
  const CudaStream stream_;
  Mutex mutex_;  // cuDNN's handle is not for two threads at a time
  // What this process puts on the stream itself meanwhile is not captured.
  std::optional<CudaStream> captures_ KOLO_GUARDED_BY(mutex_);
  // Of the kernels' stream alone: the ends of copies are looked for at any time, by whoever reads ahead.
  std::optional<StepClock> clock_ KOLO_GUARDED_BY(mutex_);
  EventThread events_;
};

/// What sessions share of one GPU. Made with its context.
struct PhysicalGpu {
  /// gpu: as CUDA counts, after CUDA_VISIBLE_DEVICES. Throws as check_cuda and memory_limit.
  PhysicalGpu(const CudaApi& api, int gpu, std::string description, const GpuOptions& options);

  const CudaApi& api;
  const int gpu;
  const std::string description;
  CudaQueue compute, in, out;
  DeviceAllocator allocator;
  PinnedAllocator pinned;
  StagedCopies staged;  // on `in`, by its work
  GpuLibraries libraries;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(const std::string& name, std::shared_ptr<PhysicalGpu> gpu)
      : Device(name, kGpuPriority), gpu_(std::move(gpu)) {}

  PhysicalGpu& physical() const { return *gpu_; }
  const std::shared_ptr<PhysicalGpu>& shared() const { return gpu_; }
  std::string physical_description() const override { return gpu_->description; }
  Allocator& allocator() override { return gpu_->allocator; }
  Allocator& host_allocator() override { return gpu_->pinned; }
  bool has_host_memory() const override { return false; }
  Stream* stream(StreamKind kind) override;
  bool runs_cpu_kernels() const override { return false; }
  /// Of the host's memory that is not pinned the caller copies all but the last pieces itself (StagedCopies).
  void copy_from(Device& from, const Tensor& source, const Tensor& target) override;
  void copy_to_host(const Tensor& source, const Tensor& target) override;

 private:
  const std::shared_ptr<PhysicalGpu> gpu_;
};

}  // namespace kolo
