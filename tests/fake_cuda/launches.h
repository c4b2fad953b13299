// What stands in for kernels: host twins of the launch functions.
#pragma once

#include <functional>

#include "calls.h"
#include "memory.h"
#include "streams.h"

namespace kolo::fake_cuda {

/// Where a twin finds `count` elements that a kernel reads; to be asked before the launch. Reported unless
/// they lie in live memory of this thread's GPU, each aligned as its type is.
template <typename T>
const T* device_read(const void* memory, std::int64_t count) {
  MutexLock lock(state_mutex());
  return reinterpret_cast<const T*>(
      on_host(current_gpu(), memory, static_cast<std::size_t>(count) * sizeof(T), alignof(T)));
}
/// The same of what it writes.
template <typename T>
T* device_write(void* memory, std::int64_t count) {
  return const_cast<T*>(device_read<T>(memory, count));
}

/// One launch: counted as a call, and like one it tells an error that an earlier call has left behind.
cudaError_t launch(const char* name, cudaStream_t stream, std::function<void()> work);

/// What cudaEventElapsedTime answers: of the engine, or algorithm, that ran last. Under state_mutex().
float& elapsed_milliseconds();
/// Of number 20, if the variable says "20:0.5,1:2", half a millisecond; 3 otherwise.
float milliseconds_of(const char* variable, std::int64_t number);

}  // namespace kolo::fake_cuda
