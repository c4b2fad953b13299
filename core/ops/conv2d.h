// Two-dimensional convolution (as everywhere in deep learning: correlation, the window is not flipped).
#pragma once

#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/sliding_window.h>

namespace kolo {

struct Conv2dOptions {
  RowsCols strides{1, 1};
  Padding padding = Padding::same;
  std::int64_t groups = 1;  // each group of channels has its own filters and sees no other channels
};

/// images [N,C,H,W] with weights [out,C/groups,kh,kw] → [N,out,H',W'] (H', W': see Padding); f32, f64.
/// Throws InvalidArgumentError for other numbers of dimensions, different C, strides below 1, or a valid
/// window that is larger than the image.
Output conv2d(const Scope& s, Output images, Output weights, Conv2dOptions options = {});

/// Each channel by itself, with M filters of its own: images [N,C,H,W] with weights [C,M,kh,kw] →
/// [N,C·M,H',W'], results c·M … c·M + M − 1 from channel c. weights: C and M must be known. `options.groups`
/// has no meaning here. Throws as conv2d.
Output depthwise_conv2d(const Scope& s, Output images, Output weights, Conv2dOptions options = {});

struct Conv2dTransposeOptions {
  RowsCols strides{1, 1};
  Padding padding = Padding::same;
  /// H', W'; 0: H · stride (same), H · stride + max(kh − stride, 0) (valid), likewise W.
  RowsCols output_size{0, 0};
};

/// The gradient of a convolution with respect to its images, as a layer that makes images larger ("transposed
/// convolution"): images [N,C,H,W] with weights [C,out,kh,kw] → [N,out,H',W'], such that a convolution of the
/// result with the same weights, strides and padding has the shape of the images. Throws InvalidArgumentError
/// for shapes and sizes of which that is not true.
Output conv2d_transpose(const Scope& s, Output images, Output weights, Conv2dTransposeOptions options = {});

}  // namespace kolo
