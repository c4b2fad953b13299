// Images made smaller or larger: the largest or the mean value under a sliding window, and another size.
#pragma once

#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/convolution.h>

namespace kolo {

// The largest or the mean value under a window that slides over images.

/// Window, strides and padding of a pooling, in pixels.
struct PoolOptions {
  RowsCols window{2, 2};
  RowsCols strides{2, 2};
  Padding padding = Padding::same;
};

/// images [N,C,H,W] → [N,C,H',W'] (H', W': see Padding); f32, f64. Padding takes no part: the mean is over
/// the elements of the image under the window. The gradient of max_pool goes to the first of equal largest
/// elements, row by row. Throws InvalidArgumentError for another number of dimensions, a window or strides
/// below 1, or a valid window that is larger than the image.
Output max_pool(const Scope& s, Output images, PoolOptions options = {});
Output avg_pool(const Scope& s, Output images, PoolOptions options = {});

/// The largest or the mean value of each whole image: [N,C,H,W] → [N,C]. The gradient of global_max_pool is
/// shared equally by all that are largest. Throw InvalidArgumentError for another number of dimensions.
Output global_max_pool(const Scope& s, Output images);
Output global_avg_pool(const Scope& s, Output images);

/// The type in which MaxPool's second output counts the cells of a window of this size.
DType max_pool_cell_type(const RowsCols& window);

// Images in another size.

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
