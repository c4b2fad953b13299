#include <kolo/core/kernels/cuda/launch_windows.h>

#include <algorithm>

#include "../launches.h"

namespace kolo::cuda {
namespace {

using fake_cuda::device_read;
using fake_cuda::device_write;
using fake_cuda::launch;

std::int64_t image(const WindowSide& rows, const WindowSide& cols) {
  return std::int64_t{rows.size} * cols.size;
}

struct Sizes {
  explicit Sizes(const Convolution& c)
      : images(c.batch * c.groups * c.channels * image(c.rows, c.cols)),
        weights(std::int64_t{c.filters} * c.channels * c.rows.window * c.cols.window),
        results(c.batch * c.filters * c.rows.outputs * c.cols.outputs) {}
  std::int64_t images, weights, results;  // elements
};

// Products of one weight with elements of a line of the image, for neighbouring results.
struct Run {
  std::int64_t image, weight, result;  // the first ones' places in the three tensors
  int count;
  int image_step;
};

// Calls work(run) for all products of the convolution.
template <typename Work>
void for_each_run(const Convolution& c, const Work& work) {
  const int size = c.cols.size, window = c.cols.window, stride = c.cols.stride, outputs = c.cols.outputs;
  const int per_group = c.filters / c.groups;
  const auto run_along_row = [&](std::int64_t image_row, std::int64_t weight, std::int64_t result_row,
                                 int col) {
    const int shift = col - c.cols.pad_before;  // of the element that the first result meets
    const int first = shift < 0 ? (-shift + stride - 1) / stride : 0;
    const int end = shift < size ? std::min(outputs, (size - 1 - shift) / stride + 1) : 0;
    if (first < end)
      work(Run{image_row + shift + first * stride, weight, result_row + first, end - first, stride});
  };
  for (std::int64_t n = 0; n < c.batch; ++n)
    for (int filter = 0; filter < c.filters; ++filter)
      for (int channel = 0; channel < c.channels; ++channel)
        for (int cell = 0; cell < c.rows.window * window; ++cell)
          for (int y = 0; y < c.rows.outputs; ++y) {
            const int row = y * c.rows.stride - c.rows.pad_before + cell / window;
            if (row < 0 || row >= c.rows.size) continue;
            const std::int64_t plane = (n * c.groups + filter / per_group) * c.channels + channel;
            run_along_row((plane * c.rows.size + row) * size,
                          (std::int64_t{filter} * c.channels + channel) * c.rows.window * window + cell,
                          ((n * c.filters + filter) * c.rows.outputs + y) * outputs, cell % window);
          }
}

}  // namespace

cudaError_t launch_convolution(cudaStream_t stream, const ConvolutionArguments& arguments) {
  const Sizes sizes(arguments.shape);
  if (sizes.results == 0) return cudaSuccess;
  const float* const images = device_read<float>(arguments.images, sizes.images);
  const float* const weights = device_read<float>(arguments.weights, sizes.weights);
  float* const results = device_write<float>(arguments.results, sizes.results);
  return launch("convolution", stream, [=, shape = arguments.shape] {
    std::fill_n(results, sizes.results, 0.0f);
    for_each_run(shape, [=](const Run& run) {
      for (int i = 0; i < run.count; ++i)
        results[run.result + i] += images[run.image + i * run.image_step] * weights[run.weight];
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
    for_each_run(shape, [=](const Run& run) {
      for (int i = 0; i < run.count; ++i)
        images[run.image + i * run.image_step] += dy[run.result + i] * weights[run.weight];
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
    for_each_run(shape, [=](const Run& run) {
      for (int i = 0; i < run.count; ++i)
        weights[run.weight] += images[run.image + i * run.image_step] * dy[run.result + i];
    });
  });
}

}  // namespace kolo::cuda
