// How the host learns that a stream of a GPU has come so far: a thread waits for events.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/base/thread_pool.h>
#include <kolo/core/device/cuda/handles.h>

namespace kolo {

/// Of one stream: its events pass in the order in which they are waited for, so that none waits for another.
/// First in, first out. (A host function in the stream, cudaLaunchHostFunc, would keep the stream waiting for
/// the host, must call nothing of CUDA, and is not called after an error.) Any thread; the destructor waits
/// for what has been asked for.
class EventThread {
 public:
  using Passed = std::function<void(std::exception_ptr error)>;

  /// api outlives it. The thread begins when it is first needed.
  EventThread(const CudaApi& api, int gpu) : api_(api), gpu_(gpu) {}

  /// Calls `passed`, on its thread, when all that stands in `stream` by now is done, with the error if it
  /// failed. `passed` must not throw, nor wait for another event. Throws as check_cuda where nothing can be
  /// recorded; `passed` is then not called.
  void when_done(cudaStream_t stream, Passed passed) KOLO_EXCLUDES(mutex_);

 private:
  CudaEvent take() KOLO_EXCLUDES(mutex_);
  void give_back(CudaEvent event) KOLO_EXCLUDES(mutex_);

  const CudaApi& api_;
  const int gpu_;
  Mutex mutex_;
  std::vector<CudaEvent> idle_ KOLO_GUARDED_BY(mutex_);
  std::unique_ptr<ThreadPool> thread_
      KOLO_GUARDED_BY(mutex_);  // the last member: joined while the rest is alive
};

}  // namespace kolo
