#include <kolo/core/kernels/cuda/launch_windows.h>
#include <kolo/core/kernels/cuda/grid.cuh>

namespace kolo::cuda {
namespace {

__device__ int highest(int a, int b) { return a > b ? a : b; }
__device__ int lowest(int a, int b) { return a < b ? a : b; }

// A place in a plane of `cols` columns.
struct Place {
  std::int64_t plane;
  int row;
  int col;
};
__device__ Place place_of(std::int64_t element, int rows, int cols) {
  const auto [line, col] = divide(element, cols);
  const auto [plane, row] = divide(line, rows);
  return {plane, static_cast<int>(row), static_cast<int>(col)};
}

// A thread for each result.
template <typename Cell>
__global__ __launch_bounds__(kThreads) void max_pool_kernel(
    const __grid_constant__ MaxPoolArguments arguments) {
  const WindowSide &rows = arguments.rows, &cols = arguments.cols;
  const std::int64_t results = arguments.planes * rows.outputs * cols.outputs;
  for_each_element(results, [&](std::int64_t result) {
    const Place place = place_of(result, rows.outputs, cols.outputs);
    const float* const x = arguments.x + place.plane * rows.size * cols.size;
    const int first_row = place.row * rows.stride - rows.pad_before;
    const int first_col = place.col * cols.stride - cols.pad_before;
    const int row_end = lowest(first_row + rows.window, rows.size);
    const int col_end = lowest(first_col + cols.window, cols.size);
    bool first = true;
    float largest = 0;
    int cell = 0;
    for (int row = highest(first_row, 0); row < row_end; ++row)
      for (int col = highest(first_col, 0); col < col_end; ++col) {
        const float value = x[std::int64_t{row} * cols.size + col];
        if (!first && !(value > largest)) continue;
        first = false;
        largest = value;
        cell = (row - first_row) * cols.window + col - first_col;
      }
    arguments.y[result] = largest;
    static_cast<Cell*>(arguments.cells)[result] = static_cast<Cell>(cell);
  });
}

// A thread for each element of the image asks the windows that it lies in, in their order: nothing is added
// to one place by two threads.
template <typename Cell>
__global__ __launch_bounds__(kThreads) void max_pool_grad_kernel(
    const __grid_constant__ MaxPoolGradArguments arguments) {
  const WindowSide &rows = arguments.rows, &cols = arguments.cols;
  for_each_element(arguments.planes * rows.size * cols.size, [&](std::int64_t element) {
    const Place place = place_of(element, rows.size, cols.size);
    const std::int64_t results = place.plane * rows.outputs * cols.outputs;
    const auto* const cells = static_cast<const Cell*>(arguments.cells) + results;
    const float* const dy = arguments.dy + results;
    const int row = place.row + rows.pad_before, col = place.col + cols.pad_before;
    const int y_end = lowest(row / rows.stride + 1, rows.outputs);
    const int x_end = lowest(col / cols.stride + 1, cols.outputs);
    float sum = 0;
    for (int y = highest(row - rows.window + rows.stride, 0) / rows.stride; y < y_end; ++y)
      for (int x = highest(col - cols.window + cols.stride, 0) / cols.stride; x < x_end; ++x) {
        const std::int64_t result = std::int64_t{y} * cols.outputs + x;
        const int cell = (row - y * rows.stride) * cols.window + col - x * cols.stride;
        if (static_cast<int>(cells[result]) == cell) sum += dy[result];
      }
    arguments.dx[element] = sum;
  });
}

}  // namespace

cudaError_t launch_max_pool(cudaStream_t stream, const MaxPoolArguments& arguments) {
  const std::int64_t results = arguments.planes * arguments.rows.outputs * arguments.cols.outputs;
  if (results == 0) return cudaSuccess;  // a grid of no blocks is an error
  switch (arguments.cell_type) {
    case ElementType::u8:
      max_pool_kernel<std::uint8_t><<<blocks_for(results), kThreads, 0, stream>>>(arguments);
      break;
    case ElementType::i32:
      max_pool_kernel<std::int32_t><<<blocks_for(results), kThreads, 0, stream>>>(arguments);
      break;
    default: return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

cudaError_t launch_max_pool_grad(cudaStream_t stream, const MaxPoolGradArguments& arguments) {
  const std::int64_t elements = arguments.planes * arguments.rows.size * arguments.cols.size;
  if (elements == 0) return cudaSuccess;
  switch (arguments.cell_type) {
    case ElementType::u8:
      max_pool_grad_kernel<std::uint8_t><<<blocks_for(elements), kThreads, 0, stream>>>(arguments);
      break;
    case ElementType::i32:
      max_pool_grad_kernel<std::int32_t><<<blocks_for(elements), kThreads, 0, stream>>>(arguments);
      break;
    default: return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

}  // namespace kolo::cuda
