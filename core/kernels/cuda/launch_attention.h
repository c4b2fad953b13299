// Attention of all sequences and heads, a query or a key at a time. See launch.h.
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
cudaError_t launch_attention(cudaStream_t stream, const AttentionArguments& arguments);

struct AttentionGradArguments {
  AttentionShape of;
  const float* qkv;
  const float* y;
  const float* log_sum;
  const float* dy;
  float* dqkv;
};
cudaError_t launch_attention_grad(cudaStream_t stream, const AttentionGradArguments& arguments);

}  // namespace kolo::cuda
