#include <kolo/core/kernels/cuda/windows.h>

#include <limits>
#include <vector>

#include <kolo/core/base/error.h>

namespace kolo::cuda {
namespace {

int small(std::int64_t number, const char* what) {
  if (number < 0 || number > std::numeric_limits<int>::max() / 2)
    throw InvalidArgumentError("{} is {}; GPU kernels take numbers below 2^30 there", what, number);
  return static_cast<int>(number);
}

WindowSide side_of(const WindowAxis& axis) {
  return {.size = small(axis.size, "the side of an image"),
          .window = small(axis.window, "the side of a window"),
          .stride = small(axis.stride, "a stride"),
          .outputs = small(axis.outputs, "the number of positions of a window"),
          .pad_before = small(axis.pad_before, "padding")};
}

}  // namespace

std::array<WindowSide, 2> window_sides(const KernelInit& init, const Shape& images, const RowsCols& window) {
  const auto [rows, cols] =
      window_axes(images, window, rows_cols(init.attr<std::vector<std::int64_t>>("strides"), "strides"),
                  padding_from_name(init.attr<std::string>("padding")));
  return {side_of(rows), side_of(cols)};
}

Convolution convolution_of(const KernelInit& init, const Shape& images, const Shape& results) {
  const Shape& weights = init.input_shape(1);
  const auto [rows, cols] = window_sides(init, images, {weights.dim(2), weights.dim(3)});
  return {.batch = results.dim(0),
          .groups = small(init.attr<std::int64_t>("groups"), "the number of groups"),
          .channels = small(weights.dim(1), "the number of channels"),
          .filters = small(weights.dim(0), "the number of filters"),
          .rows = rows,
          .cols = cols};
}

}  // namespace kolo::cuda
