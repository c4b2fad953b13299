// CUDA's handles as values that give them back.
#pragma once

#include <utility>

#include <kolo/core/device/cuda/api.h>
#include <kolo/core/device/cuda/check_cuda.h>

namespace kolo {

/// For this thread, until the next call. Not undone: to make GPU 0 current again would give a process that
/// uses another one a context there.
inline void make_current(const CudaApi& api, int gpu) { check_cuda(api.set_device(gpu), "cudaSetDevice"); }

/// Of a call that gives something back: nobody is told that it failed, nor is the next launch, which CUDA
/// would let report it as its own.
inline void forget_failure(const CudaApi& api, cudaError_t code) {
  if (code != cudaSuccess) api.get_last_error();
}

/// A stream that does not wait for the default stream, nor that for it. Of the device that is current when it
/// is made.
class CudaStream {
 public:
  explicit CudaStream(const CudaApi& api) : api_(&api) {
    check_cuda(api.stream_create_with_flags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  /// Its kernels come before those of the others where multiprocessors are free.
  static CudaStream of_highest_priority(const CudaApi& api) {
    constexpr int kHighest = -1000;  // which CUDA makes the highest that there is
    cudaStream_t made = nullptr;
    check_cuda(api.stream_create_with_priority(&made, cudaStreamNonBlocking, kHighest),
               "cudaStreamCreateWithPriority");
    return CudaStream(api, made);
  }
  CudaStream(CudaStream&& other) noexcept
      : api_(other.api_), stream_(std::exchange(other.stream_, nullptr)) {}
  CudaStream& operator=(CudaStream&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~CudaStream() {
    if (stream_ != nullptr) forget_failure(*api_, api_->stream_destroy(stream_));
  }
  cudaStream_t get() const { return stream_; }

 private:
  CudaStream(const CudaApi& api, cudaStream_t made) : api_(&api), stream_(made) {}

  const CudaApi* api_;
  cudaStream_t stream_ = nullptr;
};

/// Of the device that is current when it is made. flags: cudaEventBlockingSync where a waiter sleeps,
/// cudaEventDefault where the event tells the time.
class CudaEvent {
 public:
  explicit CudaEvent(const CudaApi& api, unsigned flags = cudaEventDisableTiming) : api_(&api) {
    check_cuda(api.event_create_with_flags(&event_, flags), "cudaEventCreateWithFlags");
  }
  CudaEvent(CudaEvent&& other) noexcept : api_(other.api_), event_(std::exchange(other.event_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(event_, other.event_);
    return *this;
  }
  ~CudaEvent() {
    if (event_ != nullptr) forget_failure(*api_, api_->event_destroy(event_));
  }
  cudaEvent_t get() const { return event_; }

 private:
  const CudaApi* api_;
  cudaEvent_t event_ = nullptr;
};

/// Waits for a stream whatever ends its scope, so that what is given back behind it is nobody's.
struct IdleAtEnd {
  const CudaApi& api;
  cudaStream_t stream;
  ~IdleAtEnd() { api.stream_synchronize(stream); }
};

/// Milliseconds of one of three `put`, each of which enqueues the same work. Waits for the stream.
template <typename Put>
double time_of_three(const CudaApi& api, cudaStream_t stream, const Put& put) {
  const CudaEvent begin(api, cudaEventDefault), end(api, cudaEventDefault);
  check_cuda(api.event_record(begin.get(), stream), "cudaEventRecord");
  for (int i = 0; i < 3; ++i) put();
  check_cuda(api.event_record(end.get(), stream), "cudaEventRecord");
  check_cuda(api.stream_synchronize(stream), "cudaStreamSynchronize");
  float took = 0;
  check_cuda(api.event_elapsed_time(&took, begin.get(), end.get()), "cudaEventElapsedTime");
  return static_cast<double>(took) / 3;
}

/// A graph that can be launched, made of one that a stream has captured, which is given back.
class CudaGraph {
 public:
  CudaGraph(const CudaApi& api, cudaGraph_t captured) : api_(&api) {
    std::size_t count = 0;
    cudaError_t code = api.graph_get_nodes(captured, nullptr, &count);
    if (code == cudaSuccess) code = api.graph_instantiate(&graph_, captured, 0);
    forget_failure(api, api.graph_destroy(captured));
    check_cuda(code, "cudaGraphInstantiate");
    nodes_ = static_cast<int>(count);
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  ~CudaGraph() {
    if (graph_ != nullptr) forget_failure(*api_, api_->graph_exec_destroy(graph_));
  }
  cudaGraphExec_t get() const { return graph_; }
  int nodes() const { return nodes_; }

 private:
  const CudaApi* api_;
  cudaGraphExec_t graph_ = nullptr;
  int nodes_ = 0;
};

}  // namespace kolo
