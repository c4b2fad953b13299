#include <type_traits>

#include <kolo/core/kernels/cuda/launch_windows.h>
#include <kolo/core/kernels/elements/walk.h>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

using elements::divide;

// A place in a plane of `cols` columns.
struct Place {
  std::int64_t plane;
  int row;
  int col;
};
KOLO_HOST_DEVICE Place place_of(std::int64_t element, int rows, int cols) {
  const auto [line, col] = divide(element, cols);
  const auto [plane, row] = divide(line, rows);
  return {plane, static_cast<int>(row), static_cast<int>(col)};
}

struct Range {
  int begin;
  int end;
  KOLO_HOST_DEVICE int size() const { return end - begin; }
};
// Of the image, under the window at a position.
KOLO_HOST_DEVICE Range under(const WindowSide& side, int position) {
  const int first = position * side.stride - side.pad_before, end = first + side.window;
  return {first > 0 ? first : 0, end < side.size ? end : side.size};
}
// The positions whose windows cover an element of the image.
KOLO_HOST_DEVICE Range covering(const WindowSide& side, int element) {
  const int padded = element + side.pad_before, before = padded - side.window + side.stride;
  const int end = padded / side.stride + 1;
  return {before > 0 ? before / side.stride : 0, end < side.outputs ? end : side.outputs};
}

KOLO_HOST_DEVICE std::int64_t image(const Windows& of) { return std::int64_t{of.rows.size} * of.cols.size; }
KOLO_HOST_DEVICE std::int64_t results(const Windows& of) {
  return std::int64_t{of.rows.outputs} * of.cols.outputs;
}

// For each result.
template <typename Cell>
struct MaxPoolWork : MaxPoolArguments {
  Cell* cell_of;

  KOLO_HOST_DEVICE void operator()(std::int64_t result) const {
    const Place place = place_of(result, of.rows.outputs, of.cols.outputs);
    const Range rows = under(of.rows, place.row), cols = under(of.cols, place.col);
    const float* const plane = x + place.plane * image(of);
    bool first = true;
    float largest = 0;
    int cell = 0;
    for (int row = rows.begin; row < rows.end; ++row)
      for (int col = cols.begin; col < cols.end; ++col) {
        const float value = plane[std::int64_t{row} * of.cols.size + col];
        if (!first && !(value > largest)) continue;
        first = false;
        largest = value;
        cell = (row - place.row * of.rows.stride + of.rows.pad_before) * of.cols.window + col -
               place.col * of.cols.stride + of.cols.pad_before;
      }
    y[result] = largest;
    cell_of[result] = static_cast<Cell>(cell);
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, of.planes * image(of));
    visit(y, of.planes * results(of));
    visit(cell_of, of.planes * results(of));
  }
};

// Each element of the image asks the windows that it lies in, in their order: nothing is added to one place
// by two threads.
template <typename Cell>
struct MaxPoolGradWork : MaxPoolGradArguments {
  const Cell* cell_of;

  KOLO_HOST_DEVICE void operator()(std::int64_t element) const {
    const Place place = place_of(element, of.rows.size, of.cols.size);
    const Range rows = covering(of.rows, place.row), cols = covering(of.cols, place.col);
    const int row = place.row + of.rows.pad_before, col = place.col + of.cols.pad_before;
    float sum = 0;
    for (int y = rows.begin; y < rows.end; ++y)
      for (int x = cols.begin; x < cols.end; ++x) {
        const std::int64_t result = place.plane * results(of) + std::int64_t{y} * of.cols.outputs + x;
        const int cell = (row - y * of.rows.stride) * of.cols.window + col - x * of.cols.stride;
        if (static_cast<int>(cell_of[result]) == cell) sum += dy[result];
      }
    dx[element] = sum;
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(cell_of, of.planes * results(of));
    visit(dy, of.planes * results(of));
    visit(dx, of.planes * image(of));
  }
};

struct AvgPoolWork : AvgPoolArguments {
  KOLO_HOST_DEVICE void operator()(std::int64_t result) const {
    const Place place = place_of(result, of.rows.outputs, of.cols.outputs);
    const Range rows = under(of.rows, place.row), cols = under(of.cols, place.col);
    const float* const plane = x + place.plane * image(of);
    float sum = 0;
    for (int row = rows.begin; row < rows.end; ++row)
      for (int col = cols.begin; col < cols.end; ++col) sum += plane[std::int64_t{row} * of.cols.size + col];
    y[result] = sum / static_cast<float>(rows.size() * cols.size());
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, of.planes * image(of));
    visit(y, of.planes * results(of));
  }
};

struct AvgPoolGradWork : AvgPoolGradArguments {
  KOLO_HOST_DEVICE void operator()(std::int64_t element) const {
    const Place place = place_of(element, of.rows.size, of.cols.size);
    const Range rows = covering(of.rows, place.row), cols = covering(of.cols, place.col);
    float sum = 0;
    for (int y = rows.begin; y < rows.end; ++y) {
      const int height = under(of.rows, y).size();
      const float* const row = dy + place.plane * results(of) + std::int64_t{y} * of.cols.outputs;
      for (int x = cols.begin; x < cols.end; ++x)
        sum += row[x] / static_cast<float>(height * under(of.cols, x).size());
    }
    dx[element] = sum;
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(dy, of.planes * results(of));
    visit(dx, of.planes * image(of));
  }
};

}  // namespace

cudaError_t launch_max_pool(cudaStream_t stream, const MaxPoolArguments& arguments) {
  const auto run = [&](auto* cells) {
    using Cell = std::remove_pointer_t<decltype(cells)>;
    return run_each("max_pool", stream, arguments.of.planes * results(arguments.of),
                    MaxPoolWork<Cell>{arguments, cells});
  };
  switch (arguments.cell_type) {
    case ElementType::u8: return run(static_cast<std::uint8_t*>(arguments.cells));
    case ElementType::i32: return run(static_cast<std::int32_t*>(arguments.cells));
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t launch_max_pool_grad(cudaStream_t stream, const MaxPoolGradArguments& arguments) {
  const auto run = [&](const auto* cells) {
    using Cell = std::remove_const_t<std::remove_pointer_t<decltype(cells)>>;
    return run_each("max_pool_grad", stream, arguments.of.planes * image(arguments.of),
                    MaxPoolGradWork<Cell>{arguments, cells});
  };
  switch (arguments.cell_type) {
    case ElementType::u8: return run(static_cast<const std::uint8_t*>(arguments.cells));
    case ElementType::i32: return run(static_cast<const std::int32_t*>(arguments.cells));
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t launch_avg_pool(cudaStream_t stream, const AvgPoolArguments& arguments) {
  return run_each("avg_pool", stream, arguments.of.planes * results(arguments.of), AvgPoolWork{arguments});
}

cudaError_t launch_avg_pool_grad(cudaStream_t stream, const AvgPoolGradArguments& arguments) {
  return run_each("avg_pool_grad", stream, arguments.of.planes * image(arguments.of),
                  AvgPoolGradWork{arguments});
}

}  // namespace kolo::cuda
