// Images in another size.
#pragma once

#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/sliding_window.h>

namespace kolo {

enum class ResizeMethod { nearest, bilinear };

/// Where result i of `out` lies among the `in` elements of the image, in each dimension: TensorFlow 1's
/// rules.
struct ResizeOptions {
  bool align_corners = false;  // i · (in − 1) / (out − 1): the first and last elements stay where they are
  bool half_pixel_centers = false;  // (i + 0.5) · in / out − 0.5; neither: i · in / out
};

/// images [N,C,H,W] → [N,C,rows,cols]; f32, f64. nearest takes the element at the place rounded down (with
/// align_corners: to the nearest; with half_pixel_centers: the one whose area holds the centre), bilinear the
/// weighted mean of the four around it. Throws InvalidArgumentError for another number of dimensions, a size
/// below 1, or both options.
Output resize(const Scope& s, Output images, RowsCols size, ResizeMethod method, ResizeOptions options = {});

}  // namespace kolo
