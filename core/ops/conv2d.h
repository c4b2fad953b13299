// Two-dimensional convolution (as everywhere in deep learning: correlation, the window is not flipped).
#pragma once

#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/sliding_window.h>

namespace kolo {

struct Conv2dOptions {
  RowsCols strides{1, 1};
  Padding padding = Padding::same;
};

/// images [N,C,H,W] with weights [out,C,kh,kw] → [N,out,H',W'] (H', W': see Padding); f32, f64.
/// Throws InvalidArgumentError for other numbers of dimensions, different C, strides below 1, or a valid
/// window that is larger than the image.
Output conv2d(const Scope& s, Output images, Output weights, Conv2dOptions options = {});

}  // namespace kolo
