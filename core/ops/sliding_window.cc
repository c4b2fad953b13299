#include <kolo/core/ops/sliding_window.h>

#include <algorithm>
#include <limits>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

// Rounded up; numerators are never negative here.
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

WindowAxis window_axis(std::int64_t size, std::int64_t window, std::int64_t stride, Padding padding) {
  if (window < 1 || stride < 1)
    throw InvalidArgumentError("a sliding window of {} elements with stride {}: both must be at least 1",
                               window, stride);
  if (size < 0) return {size, window, stride, -1, 0, 0};
  if (padding == Padding::valid) {
    if (window > size)
      throw InvalidArgumentError(
          "Negative dimension size caused by subtracting {} from {}: the window is larger than the "
          "image; use padding SAME or a smaller window",
          window, size);
    return {size, window, stride, (size - window) / stride + 1, 0, 0};
  }
  const std::int64_t outputs = ceil_div(size, stride);
  const std::int64_t padded = std::max<std::int64_t>(0, (outputs - 1) * stride + window - size);
  return {size, window, stride, outputs, padded / 2, padded - padded / 2};
}

OutputRange outputs_inside(const WindowAxis& axis, std::int64_t offset) {
  // 0 ≤ stride · o + offset − pad_before < size
  const std::int64_t shift = axis.pad_before - offset;
  const std::int64_t begin = ceil_div(std::max<std::int64_t>(0, shift), axis.stride);
  const std::int64_t end = ceil_div(std::max<std::int64_t>(0, axis.size + shift), axis.stride);
  return {std::min(begin, axis.outputs), std::max(begin, std::min(end, axis.outputs))};
}

const char* name(Padding padding) { return padding == Padding::same ? "SAME" : "VALID"; }

Padding padding_from_name(const std::string& text) {
  if (text == "SAME") return Padding::same;
  if (text == "VALID") return Padding::valid;
  throw InvalidArgumentError("padding \"{}\" is neither SAME nor VALID", text);
}

std::array<WindowAxis, 2> window_axes(const Shape& images, const RowsCols& window, const RowsCols& strides,
                                      Padding padding) {
  return {window_axis(images.dim(2), window[0], strides[0], padding),
          window_axis(images.dim(3), window[1], strides[1], padding)};
}

RowsCols rows_cols(const std::vector<std::int64_t>& numbers, const char* what) {
  if (numbers.size() != 2)
    throw InvalidArgumentError("{} has {} numbers; it must have two, for rows and columns", what,
                               numbers.size());
  // Places in images, their sizes times strides, must not overflow.
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  if (numbers[0] > kMax || numbers[1] > kMax)
    throw InvalidArgumentError("{} is {} and {}; both must fit in 32 bits", what, numbers[0], numbers[1]);
  return {numbers[0], numbers[1]};
}

}  // namespace kolo
