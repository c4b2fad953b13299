#include <kolo/core/device/cuda/event_thread.h>

#include <memory>
#include <utility>

namespace kolo {

void EventThread::when_done(int gpu, cudaStream_t stream, Passed passed) {
  make_current(api_, gpu);
  auto event = std::make_shared<CudaEvent>(take(gpu));  // shared, since std::function wants to copy
  check_cuda(api_.event_record(event->get(), stream), "cudaEventRecord");
  thread_.schedule([this, gpu, event, passed = std::move(passed)] {
    std::exception_ptr error;
    try {
      make_current(api_, gpu);  // else the first wait would give this thread a context on GPU 0
      check_cuda(api_.event_synchronize(event->get()), "cudaEventSynchronize");
      give_back(gpu, std::move(*event));
    } catch (...) {
      error = std::current_exception();
    }
    passed(error);
  });
}

CudaEvent EventThread::take(int gpu) {
  {
    MutexLock lock(mutex_);
    auto& idle = idle_[gpu];
    if (!idle.empty()) {
      CudaEvent event = std::move(idle.back());
      idle.pop_back();
      return event;
    }
  }
  return CudaEvent(api_);
}

void EventThread::give_back(int gpu, CudaEvent event) {
  MutexLock lock(mutex_);
  idle_[gpu].push_back(std::move(event));
}

}  // namespace kolo
