#include <kolo/core/kernels/cuda/launch_windows.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "../launches.h"
#include "../products.h"

namespace kolo::cuda {
namespace {

using fake_cuda::add_multiple;
using fake_cuda::device_read;
using fake_cuda::device_write;
using fake_cuda::dot;
using fake_cuda::launch;
using Int = std::int64_t;

std::int64_t image(const WindowSide& rows, const WindowSide& cols) {
  return std::int64_t{rows.size} * cols.size;
}

std::int64_t places_of(const Convolution& c) { return std::int64_t{c.rows.outputs} * c.cols.outputs; }

struct Sizes {
  explicit Sizes(const Convolution& c)
      : images(c.batch * c.groups * c.channels * image(c.rows, c.cols)),
        weights(std::int64_t{c.filters} * c.channels * c.rows.window * c.cols.window),
        results(c.batch * c.filters * c.rows.outputs * c.cols.outputs) {}
  std::int64_t images, weights, results;  // elements
};

// A tile of results of one image and group, and what of the image each of them meets: a line a result, in the
// order of a filter's weights, with zeros where the window reaches beyond the image.
class Tile {
 public:
  static constexpr std::int64_t kMost = 16;  // results: their lines stay in the cache for all filters

  explicit Tile(const Convolution& c)
      : c_(c), line_(std::int64_t{c.channels} * c.rows.window * c.cols.window) {
    lines_.resize(static_cast<std::size_t>(kMost * line_));
  }

  std::int64_t line_size() const { return line_; }
  float* line(std::int64_t result) { return lines_.data() + result * line_; }
  void clear() { std::fill(lines_.begin(), lines_.end(), 0.0f); }

  /// The lines of the results [first, first + count), from the group's channels of an image.
  void read(const float* image, std::int64_t first, std::int64_t count) {
    clear();
    for_each_run(first, count,
                 [=](float* cells, std::int64_t place, int run) { std::copy_n(image + place, run, cells); });
  }
  /// Adds them to the image.
  void add_to(float* image, std::int64_t first, std::int64_t count) {
    for_each_run(first, count, [=](const float* cells, std::int64_t place, int run) {
      for (int i = 0; i < run; ++i) image[place + i] += cells[i];
    });
  }

 private:
  // visit(cells, place in the image, count) of neighbouring cells of a window's row.
  template <typename Visit>
  void for_each_run(std::int64_t first, std::int64_t count, const Visit& visit) {
    const auto [rows, cols] = std::pair(c_.rows, c_.cols);
    for (std::int64_t result = 0; result < count; ++result) {
      const std::int64_t place = first + result;
      const int top = static_cast<int>(place / cols.outputs) * rows.stride - rows.pad_before,
                left = static_cast<int>(place % cols.outputs) * cols.stride - cols.pad_before;
      const int begin = std::max(0, -left), end = std::min(cols.window, cols.size - left);
      if (begin >= end) continue;
      for (int channel = 0; channel < c_.channels; ++channel)
        for (int y = std::max(0, -top); y < std::min(rows.window, rows.size - top); ++y)
          visit(line(result) + (std::int64_t{channel} * rows.window + y) * cols.window + begin,
                (std::int64_t{channel} * rows.size + top + y) * cols.size + left + begin, end - begin);
    }
  }

  Convolution c_;
  std::int64_t line_;
  std::vector<float> lines_;
};

// visit(tile, count, image, weights, results) of each tile: where in the three tensors the group's channels,
// its first filter and the tile's first result of that filter lie.
template <typename Visit>
void for_each_tile(const Convolution& c, const Visit& visit) {
  Tile tile(c);
  const std::int64_t places = places_of(c), filters = c.filters / c.groups;
  for (std::int64_t n = 0; n < c.batch; ++n)
    for (int group = 0; group < c.groups; ++group)
      for (std::int64_t first = 0; first < places; first += Tile::kMost)
        visit(tile, first, std::min(Tile::kMost, places - first),
              (n * c.groups + group) * c.channels * image(c.rows, c.cols), group * filters * tile.line_size(),
              (n * c.filters + group * filters) * places + first);
}

// work(filter's place in the weights, result in the tile, its place in the results) for all of a tile.
template <typename Work>
void for_each_result(const Convolution& c, std::int64_t line, std::int64_t count, std::int64_t weights,
                     std::int64_t results, const Work& work) {
  for (int filter = 0; filter < c.filters / c.groups; ++filter)
    for (std::int64_t result = 0; result < count; ++result)
      work(weights + filter * line, result, results + filter * places_of(c) + result);
}

}  // namespace

cudaError_t launch_convolution(cudaStream_t stream, const ConvolutionArguments& arguments) {
  const Sizes sizes(arguments.shape);
  if (sizes.results == 0) return cudaSuccess;
  const float* const images = device_read<float>(arguments.images, sizes.images);
  const float* const weights = device_read<float>(arguments.weights, sizes.weights);
  float* const results = device_write<float>(arguments.results, sizes.results);
  return launch("convolution", stream, [=, shape = arguments.shape] {
    for_each_tile(shape, [=](Tile& tile, Int first, Int count, Int image, Int filters, Int place) {
      tile.read(images + image, first, count);
      for_each_result(shape, tile.line_size(), count, filters, place, [&](Int filter, Int result, Int to) {
        results[to] = dot(tile.line(result), weights + filter, tile.line_size());
      });
    });
  });
}

cudaError_t launch_convolution_images(cudaStream_t stream, const ConvolutionImagesArguments& arguments) {
  const Sizes sizes(arguments.shape);
  if (sizes.images == 0) return cudaSuccess;
  const float* const weights = device_read<float>(arguments.weights, sizes.weights);
  const float* const dy = device_read<float>(arguments.dy, sizes.results);
  float* const images = device_write<float>(arguments.images, sizes.images);
  return launch("convolution_images", stream, [=, shape = arguments.shape] {
    std::fill_n(images, sizes.images, 0.0f);
    for_each_tile(shape, [=](Tile& tile, Int first, Int count, Int image, Int filters, Int place) {
      tile.clear();
      for_each_result(shape, tile.line_size(), count, filters, place, [&](Int filter, Int result, Int from) {
        add_multiple(tile.line(result), weights + filter, dy[from], tile.line_size());
      });
      tile.add_to(images + image, first, count);
    });
  });
}

cudaError_t launch_convolution_weights(cudaStream_t stream, const ConvolutionWeightsArguments& arguments) {
  const Sizes sizes(arguments.shape);
  if (sizes.weights == 0) return cudaSuccess;
  const float* const images = device_read<float>(arguments.images, sizes.images);
  const float* const dy = device_read<float>(arguments.dy, sizes.results);
  float* const weights = device_write<float>(arguments.weights, sizes.weights);
  return launch("convolution_weights", stream, [=, shape = arguments.shape] {
    std::fill_n(weights, sizes.weights, 0.0f);
    for_each_tile(shape, [=](Tile& tile, Int first, Int count, Int image, Int filters, Int place) {
      tile.read(images + image, first, count);
      for_each_result(shape, tile.line_size(), count, filters, place, [&](Int filter, Int result, Int from) {
        add_multiple(weights + filter, tile.line(result), dy[from], tile.line_size());
      });
    });
  });
}

}  // namespace kolo::cuda
