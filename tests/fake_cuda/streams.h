// Streams and events of the fake GPUs. Nothing is done when it is enqueued, only when somebody asks for it:
// who reads a result without a wait finds what was there before.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

namespace kolo::fake_cuda {

// All are called under state_mutex().

cudaStream_t make_stream(int gpu);
void end_stream(cudaStream_t stream);
/// Reported where the stream is not alive, or not of this thread's current GPU.
void check_stream(cudaStream_t stream);
void enqueue(cudaStream_t stream, std::function<void()> work);
/// What others must help with: `work` is called until it says that it is done.
void enqueue_until(cudaStream_t stream, std::function<bool()> work);
bool is_idle(cudaStream_t stream);
/// Does what stands in the stream as far as that needs nobody else.
void advance(cudaStream_t stream);
/// Does all that stands in the stream, and what that waits for.
void finish(cudaStream_t stream);
void finish_all(int gpu);

/// timed: cudaEventElapsedTime may be asked for it.
cudaEvent_t make_event(int gpu, bool timed = false);
void end_event(cudaEvent_t event);
void record(cudaEvent_t event, cudaStream_t stream);
/// Reported where the event was never recorded.
bool has_passed(cudaEvent_t event);
void advance_to(cudaEvent_t event);
void finish_event(cudaEvent_t event);
/// Reported where it has no time to tell.
void check_timed(cudaEvent_t event);
/// Of what it was recorded for last. KOLO_FAKE_CUDA_BREAK=wait: not at all.
void wait_for(cudaStream_t stream, cudaEvent_t event);

// Graphs: while a stream captures, what it is given is kept and not done.

using Work = std::vector<std::function<void()>>;
/// Reported where it captures already. Until the end the calling thread must neither wait nor take memory.
void begin_capture(cudaStream_t stream);
bool is_capturing(cudaStream_t stream);
/// What was given to it.
Work end_capture(cudaStream_t stream);
/// Reports the call that this thread is in, if it is one that a capture does not allow.
void check_not_capturing();

/// Streams and events that have not been given back; "" where all have.
std::string streams_left();

}  // namespace kolo::fake_cuda
