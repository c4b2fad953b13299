#include <kolo/core/device/cuda/counts.h>

#include <kolo/core/base/env.h>

namespace kolo {
namespace {

// CUDA waits for a copy from the GPU to memory that is not pinned.
bool is_waited_for(const void* target, cudaMemcpyKind kind) {
  if (kind != cudaMemcpyDeviceToHost) return false;
  cudaPointerAttributes found = {};
  return cuda_api().pointer_get_attributes(&found, target) == cudaSuccess &&
         found.type == cudaMemoryTypeUnregistered;
}

CudaApi make_counting_api() {
  CudaApi api = cuda_api();
  api.memcpy_async = [](void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind,
                        cudaStream_t stream) {
    ++api_counts().copies;
    if (is_waited_for(target, kind)) ++api_counts().syncs;
    return cuda_api().memcpy_async(target, source, bytes, kind, stream);
  };
  api.memcpy_peer_async = [](void* target, int target_gpu, const void* source, int source_gpu,
                             std::size_t bytes, cudaStream_t stream) {
    ++api_counts().copies;
    return cuda_api().memcpy_peer_async(target, target_gpu, source, source_gpu, bytes, stream);
  };
  api.memset_async = [](void* memory, int byte, std::size_t bytes, cudaStream_t stream) {
    ++api_counts().copies;
    return cuda_api().memset_async(memory, byte, bytes, stream);
  };
  api.stream_synchronize = [](cudaStream_t stream) {
    ++api_counts().syncs;
    return cuda_api().stream_synchronize(stream);
  };
  api.event_synchronize = [](cudaEvent_t event) {
    ++api_counts().syncs;
    return cuda_api().event_synchronize(event);
  };
  api.event_query = [](cudaEvent_t event) {  // a wait of many looks is one
    const cudaError_t code = cuda_api().event_query(event);
    if (code == cudaSuccess) ++api_counts().syncs;
    return code;
  };
  api.graph_launch = [](cudaGraphExec_t graph, cudaStream_t stream) {
    ++launch_count();
    return cuda_api().graph_launch(graph, stream);
  };
  api.graph_get_nodes = [](cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
    const cudaError_t code = cuda_api().graph_get_nodes(graph, nodes, count);
    if (code == cudaSuccess) api_counts().kept += static_cast<std::int64_t>(*count);
    return code;
  };
  return api;
}

}  // namespace

ApiCounts& api_counts() {
  static ApiCounts counts;
  return counts;
}

bool counts_calls() {
  static const bool counts = env_choice("KOLO_CUDA_COUNT", "0", {"0", "1"}) == "1";
  return counts;
}

const CudaApi& counted_cuda_api() {
  static const CudaApi counting = make_counting_api();
  return counts_calls() ? counting : cuda_api();
}

}  // namespace kolo
