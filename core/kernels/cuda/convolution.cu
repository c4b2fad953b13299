// The direct convolution: slow, and right for every shape. Each result is made by one thread, or by one block
// in a fixed order, so that it repeats bit for bit.
#include <kolo/core/kernels/cuda/launch_windows.h>
#include <kolo/core/kernels/elements/folds.h>
#include <kolo/core/kernels/cuda/warps.cuh>

namespace kolo::cuda {
namespace {

// A thread for each result [n, f, y, x].
__global__ __launch_bounds__(kThreads) void forward_kernel(
    const __grid_constant__ ConvolutionArguments arguments) {
  const Convolution& shape = arguments.shape;
  const WindowSide &rows = shape.rows, &cols = shape.cols;
  const std::int64_t plane = std::int64_t{rows.size} * cols.size;
  const std::int64_t window = std::int64_t{rows.window} * cols.window;
  const std::int64_t results = shape.batch * shape.filters * rows.outputs * cols.outputs;
  for_each_element(results, [&](std::int64_t result) {
    const auto [line, x] = divide(result, cols.outputs);
    const auto [map, y] = divide(line, rows.outputs);
    const auto [n, filter] = divide(map, shape.filters);
    const std::int64_t group = filter / (shape.filters / shape.groups);
    const float* image = arguments.images + (n * shape.groups + group) * shape.channels * plane;
    const float* weights = arguments.weights + filter * shape.channels * window;
    const int first_row = static_cast<int>(y) * rows.stride - rows.pad_before;
    const int first_col = static_cast<int>(x) * cols.stride - cols.pad_before;
    float sum = 0;
    for (int channel = 0; channel < shape.channels; ++channel, image += plane, weights += window)
      for (int r = 0; r < rows.window; ++r) {
        const int row = first_row + r;
        if (row < 0 || row >= rows.size) continue;
#pragma unroll 1  // unrolled, ptxas keeps to 32 registers and takes local memory for the rest
        for (int q = 0; q < cols.window; ++q) {
          const int col = first_col + q;
          if (col < 0 || col >= cols.size) continue;
          sum += weights[r * cols.window + q] * image[std::int64_t{row} * cols.size + col];
        }
      }
    arguments.results[result] = sum;
  });
}

// The position of the window at which its cell `cell` lies over this element; −1 if there is none.
__device__ int position_over(const WindowSide& side, int element, int cell) {
  const int begin = element + side.pad_before - cell;
  if (begin < 0 || begin % side.stride != 0) return -1;
  const int position = begin / side.stride;
  return position < side.outputs ? position : -1;
}

// A thread for each element [n, c, row, col] of the images.
// Asked for 4 blocks a multiprocessor: left to itself, ptxas saves registers for more of them and spills.
__global__ __launch_bounds__(kThreads, 4) void images_kernel(
    const __grid_constant__ ConvolutionImagesArguments arguments) {
  const Convolution& shape = arguments.shape;
  const WindowSide &rows = shape.rows, &cols = shape.cols;
  const std::int64_t map = std::int64_t{rows.outputs} * cols.outputs;
  const std::int64_t window = std::int64_t{rows.window} * cols.window;
  const std::int64_t channels = std::int64_t{shape.groups} * shape.channels;
  const int filters = shape.filters / shape.groups;  // that see a channel
  for_each_element(shape.batch * channels * rows.size * cols.size, [&](std::int64_t element) {
    const auto [line, col] = divide(element, cols.size);
    const auto [plane, row] = divide(line, rows.size);
    const auto [n, in_all] = divide(plane, channels);
    const auto [group, channel] = divide(in_all, shape.channels);
    const std::int64_t first = group * filters;
    const float* dy = arguments.dy + (n * shape.filters + first) * map;
    const float* weights = arguments.weights + (first * shape.channels + channel) * window;
    float sum = 0;
    for (int filter = 0; filter < filters; ++filter, dy += map, weights += shape.channels * window)
      for (int r = 0; r < rows.window; ++r) {
        const int y = position_over(rows, static_cast<int>(row), r);
        if (y < 0) continue;
#pragma unroll 1  // as above
        for (int q = 0; q < cols.window; ++q) {
          const int x = position_over(cols, static_cast<int>(col), q);
          if (x >= 0) sum += weights[r * cols.window + q] * dy[std::int64_t{y} * cols.outputs + x];
        }
      }
    arguments.images[element] = sum;
  });
}

// A block for each weight [f, c, r, q]; its sum goes over batch and positions, and so is kept in double.
__global__ __launch_bounds__(kThreads) void weights_kernel(
    const __grid_constant__ ConvolutionWeightsArguments arguments) {
  __shared__ double by_warp[kWarpsPerBlock];
  const Convolution& shape = arguments.shape;
  const WindowSide &rows = shape.rows, &cols = shape.cols;
  const std::int64_t plane = std::int64_t{rows.size} * cols.size;
  const std::int64_t map = std::int64_t{rows.outputs} * cols.outputs;
  const auto [line, q] = divide(blockIdx.x, cols.window);
  const auto [kernel, r] = divide(line, rows.window);
  const auto [filter, channel] = divide(kernel, shape.channels);
  const std::int64_t group = filter / (shape.filters / shape.groups);
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < shape.batch * map; i += kThreads) {
    const auto [n, place] = divide(i, map);
    const auto [y, x] = divide(place, cols.outputs);
    const std::int64_t row = y * rows.stride + r - rows.pad_before,
                       col = x * cols.stride + q - cols.pad_before;
    if (row < 0 || row >= rows.size || col < 0 || col >= cols.size) continue;
    const std::int64_t image = ((n * shape.groups + group) * shape.channels + channel) * plane;
    sum += static_cast<double>(arguments.images[image + row * cols.size + col]) *
           static_cast<double>(arguments.dy[(n * shape.filters + filter) * map + place]);
  }
  sum = fold_warp<elements::SumFold>(sum);
  if (lane() == 0) by_warp[threadIdx.x / kWarp] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kWarpsPerBlock; ++warp) sum += by_warp[warp];
  arguments.weights[blockIdx.x] = static_cast<float>(sum);
}

}  // namespace

cudaError_t launch_convolution(cudaStream_t stream, const ConvolutionArguments& arguments) {
  const Convolution& shape = arguments.shape;
  const std::int64_t results = shape.batch * shape.filters * shape.rows.outputs * shape.cols.outputs;
  if (results == 0) return cudaSuccess;  // a grid of no blocks is an error
  forward_kernel<<<blocks_for(results), kThreads, 0, stream>>>(arguments);
  return launched();
}

cudaError_t launch_convolution_images(cudaStream_t stream, const ConvolutionImagesArguments& arguments) {
  const Convolution& shape = arguments.shape;
  const std::int64_t elements =
      shape.batch * shape.groups * shape.channels * shape.rows.size * shape.cols.size;
  if (elements == 0) return cudaSuccess;
  images_kernel<<<blocks_for(elements), kThreads, 0, stream>>>(arguments);
  return launched();
}

cudaError_t launch_convolution_weights(cudaStream_t stream, const ConvolutionWeightsArguments& arguments) {
  const Convolution& shape = arguments.shape;
  const std::int64_t weights =
      std::int64_t{shape.filters} * shape.channels * shape.rows.window * shape.cols.window;
  if (weights == 0) return cudaSuccess;
  weights_kernel<<<static_cast<unsigned>(weights), kThreads, 0, stream>>>(arguments);
  return launched();
}

}  // namespace kolo::cuda
