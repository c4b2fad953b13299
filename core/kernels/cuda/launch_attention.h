// Attention of all sequences and heads. See launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>

namespace kolo::cuda {

/// qkv [batch, places, 3, heads, size], y [batch, places, heads, size], log_sum [batch, heads, places].
struct AttentionShape {
  std::int64_t batch, places, heads, size;
  bool causal;
  float scale;
};

/// y = softmax(scale · q · kᵀ) · v of each head; log_sum = the logarithms of the sums of exponentials.
struct AttentionArguments {
  AttentionShape of;
  const float* qkv;
  float* y;
  float* log_sum;
};
/// A query at a time: for heads of any size.
cudaError_t launch_attention(cudaStream_t stream, const AttentionArguments& arguments);
/// In tiles of queries and keys, many times as fast: for heads of up to kMostTiledSize.
cudaError_t launch_tiled_attention(cudaStream_t stream, const AttentionArguments& arguments);
inline constexpr std::int64_t kMostTiledSize = 128;

struct AttentionGradArguments {
  AttentionShape of;
  const float* qkv;
  const float* y;
  const float* log_sum;
  const float* dy;
  float* dqkv;
};
cudaError_t launch_attention_grad(cudaStream_t stream, const AttentionGradArguments& arguments);
cudaError_t launch_tiled_attention_grad(cudaStream_t stream, const AttentionGradArguments& arguments);

}  // namespace kolo::cuda
