#include <kolo/core/device/cuda/cuda_device.h>

#include <fmt/format.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/device/cuda/counts.h>

namespace kolo {
namespace {

class CudaMemorySource final : public MemorySource {
 public:
  CudaMemorySource(const CudaApi& api, int gpu) : api_(api), gpu_(gpu) {}

  std::int64_t total_bytes() const override { return static_cast<std::int64_t>(asked().total); }
  std::int64_t free_bytes() const override { return static_cast<std::int64_t>(asked().free); }

  // cudaMalloc aligns to 256 bytes at least.
  void* reserve(std::size_t bytes) override {
    make_current(api_, gpu_);
    void* region = nullptr;
    const cudaError_t code = api_.malloc(&region, bytes);
    if (code == cudaErrorMemoryAllocation) {
      api_.get_last_error();  // else the next launch would report it as its own
      return nullptr;
    }
    check_cuda(code, "cudaMalloc");
    return region;
  }

  // At the end of a process the runtime may be gone before; its memory then goes with the context.
  void release(void* region, std::size_t) noexcept override {
    api_.set_device(gpu_);
    api_.free(region);
  }

 private:
  struct Memory {
    std::size_t free = 0, total = 0;
  };
  Memory asked() const {
    make_current(api_, gpu_);
    Memory memory;
    check_cuda(api_.mem_get_info(&memory.free, &memory.total), "cudaMemGetInfo");
    return memory;
  }

  const CudaApi& api_;
  const int gpu_;
};

struct CudaStreamEvent final : StreamEvent {
  explicit CudaStreamEvent(const CudaApi& api) : event(api) {}
  CudaEvent event;
};

class CudaStreamGraph final : public StreamGraph {
 public:
  CudaStreamGraph(CudaQueue& queue, const CudaApi& api, cudaGraph_t captured)
      : queue_(queue), api_(api), graph_(api, captured) {}
  cudaGraphExec_t get() const { return graph_.get(); }
  void launch() override {
    queue_.enqueue([this] {
      check_cuda(api_.graph_launch(graph_.get(), static_cast<cudaStream_t>(queue_.native())),
                 "cudaGraphLaunch");
    });
  }
  int nodes() const override { return graph_.nodes(); }

 private:
  CudaQueue& queue_;
  const CudaApi& api_;
  const CudaGraph graph_;
};

CudaStream stream_of(const CudaApi& api, int gpu) {
  make_current(api, gpu);
  return CudaStream(api);
}

}  // namespace

void StepClock::given(cudaStream_t stream) {
  if (is_open_) return;
  is_open_ = true;
  std::optional<Step>& step = last_[turn_];
  if (!step) step.emplace(Step{CudaEvent(api_, cudaEventDefault), CudaEvent(api_, cudaEventDefault)});
  check_cuda(api_.event_record(step->begin.get(), stream), "cudaEventRecord");
}

void StepClock::looked_for(cudaStream_t stream) {
  if (!is_open_) return;
  is_open_ = false;
  times_.given = std::chrono::steady_clock::now();
  check_cuda(api_.event_record(last_[turn_]->end.get(), stream), "cudaEventRecord");
  turn_ = 1 - turn_;
  if (!last_[turn_]) return;
  float took = 0;
  check_cuda(api_.event_elapsed_time(&took, last_[turn_]->begin.get(), last_[turn_]->end.get()),
             "cudaEventElapsedTime");
  ++times_.steps;
  times_.milliseconds += static_cast<double>(took);
}

CudaQueue::CudaQueue(const CudaApi& api, int gpu, const std::string& kind)
    : Stream(fmt::format("GPU {} {}", gpu, kind)),
      api_(api),
      gpu_(gpu),
      stream_(stream_of(api, gpu)),
      clock_(counts_calls() && kind == "compute" ? std::optional<StepClock>(api) : std::nullopt),
      events_(api, gpu) {}

void CudaQueue::enqueue(std::function<void()> work) {
  MutexLock lock(mutex_);
  make_current(api_, gpu_);
  if (clock_) clock_->given(stream_.get());
  work();
  if (waits_after_each_piece()) check_cuda(api_.stream_synchronize(stream_.get()), "KOLO_CUDA_SYNC");
}

void CudaQueue::check() {
  make_current(api_, gpu_);
  const cudaError_t code = api_.stream_query(stream_.get());
  if (code == cudaErrorNotReady) api_.get_last_error();  // else the next launch would report it as its own
  else check_cuda(code, "cudaStreamQuery");
}

// The handles of cuDNN that `put` uses are guarded as in enqueue().
std::unique_ptr<StreamGraph> CudaQueue::capture(std::function<void(void* native)> put) {
  MutexLock lock(mutex_);
  make_current(api_, gpu_);
  if (!captures_) captures_.emplace(api_);
  cudaStream_t const queue = captures_->get();
  check_cuda(api_.stream_begin_capture(queue, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  std::exception_ptr error;
  try {
    put(queue);
  } catch (...) {
    error = std::current_exception();
  }
  cudaGraph_t captured = nullptr;
  const cudaError_t code = api_.stream_end_capture(queue, &captured);
  if (code != cudaSuccess || error) {
    if (captured != nullptr) api_.graph_destroy(captured);
    api_.get_last_error();  // else the next launch would report it as its own
    if (error) std::rethrow_exception(error);
    check_cuda(code, "cudaStreamEndCapture");
  }
  auto made = std::make_unique<CudaStreamGraph>(*this, api_, captured);
  check_cuda(api_.graph_upload(made->get(), stream_.get()), "cudaGraphUpload");
  return made;
}

StepTimes CudaQueue::step_times() {
  MutexLock lock(mutex_);
  return clock_ ? clock_->times() : StepTimes{};
}

std::unique_ptr<StreamEvent> CudaQueue::make_event() {
  make_current(api_, gpu_);
  return std::make_unique<CudaStreamEvent>(api_);
}

void CudaQueue::put_end(Done done) {
  make_current(api_, gpu_);
  try {
    events_.when_done(stream_.get(), std::move(done));
  } catch (...) {
    // The caller takes this for the end, and gives back memory that what is queued still uses.
    api_.stream_synchronize(stream_.get());
    throw;
  }
}

void CudaQueue::put_record(StreamEvent& event) {
  make_current(api_, gpu_);
  check_cuda(api_.event_record(static_cast<CudaStreamEvent&>(event).event.get(), stream_.get()),
             "cudaEventRecord");
}

void CudaQueue::put_wait(StreamEvent& event) {
  make_current(api_, gpu_);
  check_cuda(api_.stream_wait_event(stream_.get(), static_cast<CudaStreamEvent&>(event).event.get(), 0),
             "cudaStreamWaitEvent");
}

bool CudaQueue::try_done(StreamEvent& event) {
  make_current(api_, gpu_);
  if (counts_calls()) {
    MutexLock lock(mutex_);
    if (clock_) clock_->looked_for(stream_.get());
  }
  const cudaError_t code = api_.event_query(static_cast<CudaStreamEvent&>(event).event.get());
  if (code == cudaErrorNotReady) {
    api_.get_last_error();  // else the next launch would report it as its own
    return false;
  }
  check_cuda(code, "cudaEventQuery");
  return true;
}

PhysicalGpu::PhysicalGpu(const CudaApi& table, int number, std::string text, const GpuOptions& options)
    : api(table),
      gpu(number),
      description(std::move(text)),
      compute(api, gpu, "compute"),
      in(api, gpu, "in"),
      out(api, gpu, "out"),
      allocator(fmt::format("GPU {}", gpu), std::make_unique<CudaMemorySource>(api, gpu), options),
      pinned(api, gpu),
      staged(api, pinned, static_cast<cudaStream_t>(in.native())),
      libraries(api, gpu) {}

Stream* CudaDevice::stream(StreamKind kind) {
  return kind == StreamKind::in ? &gpu_->in : kind == StreamKind::out ? &gpu_->out : &gpu_->compute;
}

void CudaDevice::copy_from(Device& from, const Tensor& source, const Tensor& target) {
  if (source.bytes() == 0) return;
  auto* const stream = static_cast<cudaStream_t>(gpu_->in.native());
  const auto* const other = dynamic_cast<const CudaDevice*>(&from);
  if (other != nullptr && other->gpu_ != gpu_)
    check_cuda(gpu_->api.memcpy_peer_async(target.raw(), gpu_->gpu, source.raw(), other->gpu_->gpu,
                                           source.bytes(), stream),
               "cudaMemcpyPeerAsync");
  else if (other != nullptr || !gpu_->staged.copy(target.raw(), source.raw(), source.bytes()))
    check_cuda(
        gpu_->api.memcpy_async(target.raw(), source.raw(), source.bytes(),
                               other == nullptr ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice, stream),
        "cudaMemcpyAsync to the GPU");
}

void CudaDevice::copy_to_host(const Tensor& source, const Tensor& target) {
  if (source.bytes() > 0)
    check_cuda(gpu_->api.memcpy_async(target.raw(), source.raw(), source.bytes(), cudaMemcpyDeviceToHost,
                                      static_cast<cudaStream_t>(gpu_->out.native())),
               "cudaMemcpyAsync from the GPU");
}

}  // namespace kolo
