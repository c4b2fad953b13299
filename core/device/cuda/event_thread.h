// How the host learns that a GPU has come so far: one thread of the process waits for events.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/base/thread_pool.h>
#include <kolo/core/device/cuda/handles.h>

namespace kolo {

/// First in, first out. (A host function in the stream, cudaLaunchHostFunc, would keep the stream waiting for
/// the host, must call nothing of CUDA, and is not called after an error.) Any thread; the destructor waits
/// for what has been asked for.
class EventThread {
 public:
  using Passed = std::function<void(std::exception_ptr error)>;

  /// api outlives it.
  explicit EventThread(const CudaApi& api) : api_(api) {}

  /// Calls `passed`, on its thread, when all that stands in `stream` of GPU `gpu` by now is done, with the
  /// error if it failed. `passed` must not throw, nor wait for another event. Throws as check_cuda where
  /// nothing can be recorded; `passed` is then not called.
  void when_done(int gpu, cudaStream_t stream, Passed passed) KOLO_EXCLUDES(mutex_);

 private:
  CudaEvent take(int gpu) KOLO_EXCLUDES(mutex_);
  void give_back(int gpu, CudaEvent event) KOLO_EXCLUDES(mutex_);

  const CudaApi& api_;
  Mutex mutex_;
  std::map<int, std::vector<CudaEvent>> idle_ KOLO_GUARDED_BY(mutex_);  // by GPU
  ThreadPool thread_{"kolo-events", 1};  // the last member: joined while the rest is alive
};

}  // namespace kolo
