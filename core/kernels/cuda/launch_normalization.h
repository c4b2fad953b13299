// Batch normalization. What is added to what follows from the sizes alone. See launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>

namespace kolo::cuda {

/// Images [batch, channels, inner]; the elements of a channel are cut into `parts` runs of equal length.
struct Channels {
  std::int64_t batch;
  std::int64_t channels;
  std::int64_t inner;
  std::int64_t parts;
};

/// mean and variance over the channel; y = (x − mean) · scale / √(variance + epsilon) + offset; the moving
/// averages come nearer to mean and sample variance by 1 − momentum. y may be x.
struct BatchNormArguments {
  Channels of;
  const float* x;
  const float* scale;
  const float* offset;
  const float* moving_mean;
  const float* moving_variance;
  float* y;
  float* mean;
  float* variance;
  float* new_moving_mean;
  float* new_moving_variance;
  double epsilon;
  double momentum;
  double* partial;  // 2 · channels · parts
};
cudaError_t launch_batch_norm(cudaStream_t stream, const BatchNormArguments& arguments);

/// With r = 1 / √(variance + epsilon): doffset = Σ dy, dscale = Σ dy · (x − mean) · r,
/// dx = scale · r · (dy − doffset / n − (x − mean) · r · dscale / n). dx may be dy.
struct BatchNormGradArguments {
  Channels of;
  const float* x;
  const float* scale;
  const float* mean;
  const float* variance;
  const float* dy;
  float* dx;
  float* dscale;
  float* doffset;
  double epsilon;
  double* partial;      // 2 · channels · parts
  float* coefficients;  // 3 · channels
};
cudaError_t launch_batch_norm_grad(cudaStream_t stream, const BatchNormGradArguments& arguments);

/// y = (x − mean) · scale / √(variance + epsilon) + offset. y may be x.
struct BatchNormInferenceArguments {
  Channels of;
  const float* x;
  const float* scale;
  const float* offset;
  const float* mean;
  const float* variance;
  float* y;
  double epsilon;
};
cudaError_t launch_batch_norm_inference(cudaStream_t stream, const BatchNormInferenceArguments& arguments);

}  // namespace kolo::cuda
