// CUDA's handles as values that give them back.
#pragma once

#include <utility>

#include <kolo/core/device/cuda/api.h>
#include <kolo/core/device/cuda/check_cuda.h>

namespace kolo {

/// For this thread, until the next call. Not undone: to make GPU 0 current again would give a process that
/// uses another one a context there.
inline void make_current(const CudaApi& api, int gpu) { check_cuda(api.set_device(gpu), "cudaSetDevice"); }

/// A stream that does not wait for the default stream, nor that for it. Of the device that is current when it
/// is made.
class CudaStream {
 public:
  explicit CudaStream(const CudaApi& api) : api_(&api) {
    check_cuda(api.stream_create_with_flags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  CudaStream(CudaStream&& other) noexcept
      : api_(other.api_), stream_(std::exchange(other.stream_, nullptr)) {}
  CudaStream& operator=(CudaStream&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~CudaStream() {
    if (stream_ != nullptr) api_->stream_destroy(stream_);
  }
  cudaStream_t get() const { return stream_; }

 private:
  const CudaApi* api_;
  cudaStream_t stream_ = nullptr;
};

/// An event that tells no time and whose waiter sleeps. Of the device that is current when it is made.
class CudaEvent {
 public:
  explicit CudaEvent(const CudaApi& api) : api_(&api) {
    check_cuda(api.event_create_with_flags(&event_, cudaEventDisableTiming | cudaEventBlockingSync),
               "cudaEventCreateWithFlags");
  }
  CudaEvent(CudaEvent&& other) noexcept : api_(other.api_), event_(std::exchange(other.event_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(event_, other.event_);
    return *this;
  }
  ~CudaEvent() {
    if (event_ != nullptr) api_->event_destroy(event_);
  }
  cudaEvent_t get() const { return event_; }

 private:
  const CudaApi* api_;
  cudaEvent_t event_ = nullptr;
};

}  // namespace kolo
