#include <kolo/core/device/cuda/api.h>

namespace kolo {

const CudaApi& cuda_api() {
  static const CudaApi api = {.driver_get_version = cudaDriverGetVersion,
                              .runtime_get_version = cudaRuntimeGetVersion,
                              .get_device_count = cudaGetDeviceCount,
                              .get_device_properties = cudaGetDeviceProperties,
                              .device_get_attribute = cudaDeviceGetAttribute,
                              .device_get_pci_bus_id = cudaDeviceGetPCIBusId,
                              .device_can_access_peer = cudaDeviceCanAccessPeer,
                              .set_device = cudaSetDevice,
                              .get_device = cudaGetDevice,
                              .device_enable_peer_access = cudaDeviceEnablePeerAccess,
                              .get_last_error = cudaGetLastError,
                              .mem_get_info = cudaMemGetInfo,
                              .malloc = cudaMalloc,
                              .free = cudaFree,
                              .host_alloc = cudaHostAlloc,
                              .free_host = cudaFreeHost,
                              .pointer_get_attributes = cudaPointerGetAttributes,
                              .memcpy_async = cudaMemcpyAsync,
                              .memcpy_peer_async = cudaMemcpyPeerAsync,
                              .memset_async = cudaMemsetAsync,
                              .stream_create_with_flags = cudaStreamCreateWithFlags,
                              .stream_create_with_priority = cudaStreamCreateWithPriority,
                              .stream_destroy = cudaStreamDestroy,
                              .stream_query = cudaStreamQuery,
                              .stream_synchronize = cudaStreamSynchronize,
                              .stream_wait_event = cudaStreamWaitEvent,
                              .event_create_with_flags = cudaEventCreateWithFlags,
                              .event_destroy = cudaEventDestroy,
                              .event_record = cudaEventRecord,
                              .event_query = cudaEventQuery,
                              .event_synchronize = cudaEventSynchronize,
                              .event_elapsed_time = cudaEventElapsedTime,
                              .stream_begin_capture = cudaStreamBeginCapture,
                              .stream_end_capture = cudaStreamEndCapture,
                              .graph_instantiate = cudaGraphInstantiate,
                              .graph_upload = cudaGraphUpload,
                              .graph_launch = cudaGraphLaunch,
                              .graph_exec_destroy = cudaGraphExecDestroy,
                              .graph_destroy = cudaGraphDestroy,
                              .graph_get_nodes = cudaGraphGetNodes};
  return api;
}

std::atomic<std::int64_t>& launch_count() {
  static std::atomic<std::int64_t> count{0};
  return count;
}

}  // namespace kolo
