// Windows that slide over images: pooling and the direct convolution. Tensors are [N,C,H,W]. No result is
// added up by several threads in an order of luck. See launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>

namespace kolo::cuda {

/// One dimension of a sliding window: position o covers elements o · stride − pad_before + [0, window) of the
/// image, as far as they lie in [0, size).
struct WindowSide {
  int size;
  int window;
  int stride;
  int outputs;  // positions
  int pad_before;
};

/// Windows over images [planes, rows.size, cols.size]; results are [planes, rows.outputs, cols.outputs].
struct Windows {
  std::int64_t planes;  // N · C
  WindowSide rows;
  WindowSide cols;
};

/// y is the largest element under each window, `cells` its number there (row · columns + column, counted in
/// the whole window), the first of equals. A NaN is kept where it stands first, and passed over behind a
/// number, as on the CPU.
struct MaxPoolArguments {
  Windows of;
  const float* x;
  float* y;
  void* cells;  // as y, u8 or i32
  ElementType cell_type;
};
cudaError_t launch_max_pool(cudaStream_t stream, const MaxPoolArguments& arguments);

/// dx = the sum of dy of those windows that chose the element, in the order of the windows.
struct MaxPoolGradArguments {
  Windows of;
  const void* cells;
  ElementType cell_type;
  const float* dy;
  float* dx;
};
cudaError_t launch_max_pool_grad(cudaStream_t stream, const MaxPoolGradArguments& arguments);

/// y is the mean of the elements under each window, padding left out.
struct AvgPoolArguments {
  Windows of;
  const float* x;
  float* y;
};
cudaError_t launch_avg_pool(cudaStream_t stream, const AvgPoolArguments& arguments);

/// dx = the sum of the shares of those windows that cover the element, in the order of the windows.
struct AvgPoolGradArguments {
  Windows of;
  const float* dy;
  float* dx;
};
cudaError_t launch_avg_pool_grad(cudaStream_t stream, const AvgPoolGradArguments& arguments);

/// images [batch, groups · channels, rows.size, cols.size], weights [filters, channels, rows.window,
/// cols.window], results [batch, filters, rows.outputs, cols.outputs]. Filter f sees the `channels` channels
/// of group f / (filters / groups).
struct Convolution {
  std::int64_t batch;
  int groups;
  int channels;  // of a group
  int filters;   // of all groups
  WindowSide rows;
  WindowSide cols;
};

/// results = images ⋆ weights: correlation, the window is not flipped.
struct ConvolutionArguments {
  Convolution shape;
  const float* images;
  const float* weights;
  float* results;
};
cudaError_t launch_convolution(cudaStream_t stream, const ConvolutionArguments& arguments);

/// The gradient with respect to the images, of the results' gradient dy.
struct ConvolutionImagesArguments {
  Convolution shape;
  const float* weights;
  const float* dy;
  float* images;
};
cudaError_t launch_convolution_images(cudaStream_t stream, const ConvolutionImagesArguments& arguments);

/// The gradient with respect to the weights.
struct ConvolutionWeightsArguments {
  Convolution shape;
  const float* images;
  const float* dy;
  float* weights;
};
cudaError_t launch_convolution_weights(cudaStream_t stream, const ConvolutionWeightsArguments& arguments);

}  // namespace kolo::cuda
