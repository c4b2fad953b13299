// Two-dimensional convolution (as everywhere in deep learning: correlation, the window is not flipped), and
// where a window that slides over an image stands.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <kolo/core/graph/op_schema.h>
#include <kolo/core/graph/scope.h>

namespace kolo {

// Where a window that slides over an image stands: the rule that convolution and pooling share.

/// same: outputs = ceil(size / stride), zeros around the image where the window overhangs, the odd one at its
/// end. valid: only where the whole window lies inside the image.
enum class Padding { same, valid };

/// One number for the rows (height), one for the columns (width).
using RowsCols = std::array<std::int64_t, 2>;

/// One dimension of a sliding window.
struct WindowAxis {
  std::int64_t size;    // of the image
  std::int64_t window;  // of the window
  std::int64_t stride;
  std::int64_t outputs;     // positions of the window
  std::int64_t pad_before;  // zeros before the image
  std::int64_t
      pad_after;  // zeros behind it that the last position reaches; the image's own end where it reaches none
};

/// TensorFlow's rule. size −1 (unknown) gives outputs −1. Throws InvalidArgumentError if the window or the
/// stride is below 1, and `Negative dimension size caused by subtracting 5 from 3` for a window that does not
/// fit into a valid image.
WindowAxis window_axis(std::int64_t size, std::int64_t window, std::int64_t stride, Padding padding);

/// Input positions i = stride · o + offset − pad_before, for those outputs o in [begin, end) that lie inside
/// the image.
struct OutputRange {
  std::int64_t begin;
  std::int64_t end;
};
OutputRange outputs_inside(const WindowAxis& axis, std::int64_t offset);

/// "SAME", "VALID": as the attribute of a node. Throws InvalidArgumentError for another text.
const char* name(Padding padding);
Padding padding_from_name(const std::string& text);

/// The window's two dimensions from an op's attributes `strides` and `padding`. images: [N,C,H,W].
std::array<WindowAxis, 2> window_axes(const Shape& images, const RowsCols& window, const RowsCols& strides,
                                      Padding padding);
/// A list(int) attribute of two numbers. Throws InvalidArgumentError, with `what`, unless it is two of 32
/// bits.
RowsCols rows_cols(const std::vector<std::int64_t>& numbers, const char* what);

// Convolutions.

/// Strides in pixels, padding and groups of a convolution.
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

/// Strides and padding of a transposed convolution, in pixels.
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
