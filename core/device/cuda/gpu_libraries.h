// The handles of NVIDIA's libraries for one GPU.
#pragma once

#include <memory>
#include <string>

#include <kolo/core/base/mutex.h>
#include <kolo/core/device/cuda/api.h>

namespace kolo {

struct BlasHandle;  // blas_api.h
struct DnnHandle;   // dnn_api.h

/// Made when they are first asked for: they take memory of the GPU. Never given back: at the end of a process
/// the libraries' own static objects go first, and what destroys a handle then may crash. Any thread.
class GpuLibraries {
 public:
  /// api outlives it. gpu: as CUDA counts.
  GpuLibraries(const CudaApi& api, int gpu) : api_(api), gpu_(gpu) {}
  GpuLibraries(const GpuLibraries&) = delete;
  GpuLibraries& operator=(const GpuLibraries&) = delete;

  /// nullptr, and why, where the machine has no library that serves, or it makes no handle. The GPU is
  /// current afterwards.
  BlasHandle* blas(std::string& why) KOLO_EXCLUDES(mutex_);
  DnnHandle* dnn(std::string& why) KOLO_EXCLUDES(mutex_);  // not in a build without cuDNN's headers

 private:
  const CudaApi& api_;
  const int gpu_;
  Mutex mutex_;
  std::shared_ptr<BlasHandle> blas_ KOLO_GUARDED_BY(mutex_);
  std::shared_ptr<DnnHandle> dnn_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo
