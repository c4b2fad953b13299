// Layer normalization. What is added to what follows from the sizes alone. See launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>

namespace kolo::cuda {

/// Of each row of s [rows, width], which is x, or x + bias + added: mean, inverse = 1 / √(variance +
/// epsilon), y = (s − mean) · inverse · scale + offset with a scale and an offset for each column. y may be
/// x.
struct LayerNormArguments {
  std::int64_t rows;
  std::int64_t width;
  const float* x;
  const float* scale;
  const float* offset;
  float* y;
  float* mean;
  float* inverse;
  double epsilon;
  const float* added = nullptr;  // nullptr: s is x
  const float* bias = nullptr;   // for each column; nullptr: none
  float* sum = nullptr;          // s, where something is added
};
cudaError_t launch_layer_norm(cudaStream_t stream, const LayerNormArguments& arguments);

/// With z = (x − mean) · inverse and g = dy · scale: doffset = Σ dy and dscale = Σ dy · z over the rows,
/// which are cut into `parts` runs; dx = inverse · (g − mean of g − z · mean of g · z) along them, plus
/// `added`.
struct LayerNormGradArguments {
  std::int64_t rows;
  std::int64_t width;
  std::int64_t parts;
  const float* x;
  const float* scale;
  const float* mean;
  const float* inverse;
  const float* dy;
  float* dx;  // another place than dy; may be `added`
  float* dscale;
  float* doffset;
  double* partial;               // 2 · parts · width
  const float* added = nullptr;  // nullptr: nothing
};
cudaError_t launch_layer_norm_grad(cudaStream_t stream, const LayerNormGradArguments& arguments);

/// Wider rows than that are read more than once in the gradient.
inline constexpr std::int64_t kWidestHeldGradient = 2048;

}  // namespace kolo::cuda
