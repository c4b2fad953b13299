// The functions of CUDA's runtime that kolo calls, as a table: tests put others in their place. Asynchronous
// forms with a stream only: nothing here waits for a whole device or touches the default stream.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kolo {

/// Named after CUDA's functions: cudaMemcpyAsync is memcpy_async. Whoever calls what needs a context has made
/// its device current on that thread (make_current in handles.h): a thread that has not gets GPU 0.
struct CudaApi {
  // The machine; no context is made.
  cudaError_t (*driver_get_version)(int* version);
  cudaError_t (*runtime_get_version)(int* version);
  cudaError_t (*get_device_count)(int* count);
  cudaError_t (*get_device_properties)(cudaDeviceProp* properties, int gpu);
  cudaError_t (*device_get_attribute)(int* value, cudaDeviceAttr attribute, int gpu);
  cudaError_t (*device_get_pci_bus_id)(char* text, int bytes, int gpu);
  cudaError_t (*device_can_access_peer)(int* can, int gpu, int peer);

  // Contexts and errors.
  cudaError_t (*set_device)(int gpu);
  cudaError_t (*get_device)(int* gpu);
  cudaError_t (*device_enable_peer_access)(int peer, unsigned flags);
  cudaError_t (*get_last_error)();

  // Memory.
  cudaError_t (*mem_get_info)(std::size_t* free, std::size_t* total);
  cudaError_t (*malloc)(void** memory, std::size_t bytes);
  cudaError_t (*free)(void* memory);
  cudaError_t (*host_alloc)(void** memory, std::size_t bytes, unsigned flags);
  cudaError_t (*free_host)(void* memory);
  cudaError_t (*pointer_get_attributes)(cudaPointerAttributes* attributes, const void* memory);
  cudaError_t (*memcpy_async)(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind,
                              cudaStream_t stream);
  cudaError_t (*memcpy_peer_async)(void* target, int target_gpu, const void* source, int source_gpu,
                                   std::size_t bytes, cudaStream_t stream);
  cudaError_t (*memset_async)(void* memory, int byte, std::size_t bytes, cudaStream_t stream);

  // Streams and events.
  cudaError_t (*stream_create_with_flags)(cudaStream_t* stream, unsigned flags);
  cudaError_t (*stream_create_with_priority)(cudaStream_t* stream, unsigned flags, int priority);
  cudaError_t (*stream_destroy)(cudaStream_t stream);
  cudaError_t (*stream_query)(cudaStream_t stream);
  cudaError_t (*stream_synchronize)(cudaStream_t stream);
  cudaError_t (*stream_wait_event)(cudaStream_t stream, cudaEvent_t event, unsigned flags);
  cudaError_t (*event_create_with_flags)(cudaEvent_t* event, unsigned flags);
  cudaError_t (*event_destroy)(cudaEvent_t event);
  cudaError_t (*event_record)(cudaEvent_t event, cudaStream_t stream);
  cudaError_t (*event_query)(cudaEvent_t event);
  cudaError_t (*event_synchronize)(cudaEvent_t event);
  cudaError_t (*event_elapsed_time)(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);

  // Graphs: what a stream was given while it captured.
  cudaError_t (*stream_begin_capture)(cudaStream_t stream, cudaStreamCaptureMode mode);
  cudaError_t (*stream_end_capture)(cudaStream_t stream, cudaGraph_t* graph);
  cudaError_t (*graph_instantiate)(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long flags);
  cudaError_t (*graph_upload)(cudaGraphExec_t graph, cudaStream_t stream);
  cudaError_t (*graph_launch)(cudaGraphExec_t graph, cudaStream_t stream);
  cudaError_t (*graph_exec_destroy)(cudaGraphExec_t graph);
  cudaError_t (*graph_destroy)(cudaGraph_t graph);
  cudaError_t (*graph_get_nodes)(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count);
};

/// CUDA's own, of the runtime that the plug-in is linked with.
const CudaApi& cuda_api();

/// Kernels, graphs, and calls of cuBLASLt and cuDNN that were started so far. Those who start them add.
std::atomic<std::int64_t>& launch_count();

}  // namespace kolo
