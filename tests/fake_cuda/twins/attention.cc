#include "../run.h"

#include <kolo/core/kernels/cuda/attention.cu>

namespace kolo::cuda {

// Tiles are for a GPU's shared memory: for the host the same is made without.
cudaError_t launch_tiled_attention(cudaStream_t stream, const AttentionArguments& arguments) {
  return launch_attention(stream, arguments);
}
cudaError_t launch_tiled_attention_grad(cudaStream_t stream, const AttentionGradArguments& arguments) {
  return launch_attention_grad(stream, arguments);
}

}  // namespace kolo::cuda
