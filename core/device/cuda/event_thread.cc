#include <kolo/core/device/cuda/event_thread.h>

#include <utility>

namespace kolo {

void EventThread::when_done(cudaStream_t stream, Passed passed) {
  make_current(api_, gpu_);
  auto event = std::make_shared<CudaEvent>(take());  // shared, since std::function wants to copy
  MutexLock lock(mutex_);  // events stand in the stream in the order in which they are waited for
  if (thread_ == nullptr) thread_ = std::make_unique<ThreadPool>("kolo-events", 1);
  check_cuda(api_.event_record(event->get(), stream), "cudaEventRecord");
  thread_->schedule([this, event, passed = std::move(passed)] {
    std::exception_ptr error;
    try {
      make_current(api_, gpu_);  // else the first wait would give this thread a context on GPU 0
      check_cuda(api_.event_synchronize(event->get()), "cudaEventSynchronize");
      give_back(std::move(*event));
    } catch (...) {
      error = std::current_exception();
    }
    passed(error);
  });
}

CudaEvent EventThread::take() {
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      CudaEvent event = std::move(idle_.back());
      idle_.pop_back();
      return event;
    }
  }
  return CudaEvent(api_, cudaEventDisableTiming | cudaEventBlockingSync);
}

void EventThread::give_back(CudaEvent event) {
  MutexLock lock(mutex_);
  idle_.push_back(std::move(event));
}

}  // namespace kolo
