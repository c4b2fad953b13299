// Where a window that slides over an image stands: the rule that convolution and pooling share.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <kolo/core/graph/op_schema.h>

namespace kolo {

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

}  // namespace kolo
