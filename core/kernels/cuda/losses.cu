// A warp for each line: it reads the line from memory once and then from the cache.
#include <cmath>
#include <limits>

#include <kolo/core/kernels/cuda/launch_losses.h>
#include <kolo/core/kernels/elements/folds.h>
#include <kolo/core/kernels/cuda/warps.cuh>

namespace kolo::cuda {
namespace {

using elements::MaxFold;
using elements::SumFold;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Where the line begins, in elements.
__device__ std::int64_t line_at(const Lines& lines, std::int64_t line) {
  const auto [outer, column] = divide(line, lines.inner);
  return outer * lines.count * lines.inner + column;
}

__device__ float largest_of(const float* x, std::int64_t count, std::int64_t step) {
  float largest = MaxFold::start<float>();
  for (std::int64_t i = lane(); i < count; i += kWarp) largest = MaxFold::join(largest, x[i * step]);
  return fold_warp<MaxFold>(largest);
}

__device__ float sum_of_exponentials(const float* x, float largest, std::int64_t count, std::int64_t step) {
  float sum = 0;
  for (std::int64_t i = lane(); i < count; i += kWarp) sum += std::exp(x[i * step] - largest);
  return fold_warp<SumFold>(sum);
}

__global__ __launch_bounds__(kThreads) void softmax_kernel(
    const __grid_constant__ SoftmaxArguments arguments) {
  const Lines& lines = arguments.lines;
  const std::int64_t line = warp_unit(), step = lines.inner;
  if (line >= lines.outer * lines.inner) return;
  const float* const x = arguments.x + line_at(lines, line);
  float* const y = arguments.y + line_at(lines, line);
  const float largest = largest_of(x, lines.count, step);
  const float sum = sum_of_exponentials(x, largest, lines.count, step);
  const float log_sum = std::log(sum);
  // y may be x: each thread reads an element before it writes it, and no other reads it any more.
  for (std::int64_t i = lane(); i < lines.count; i += kWarp) {
    const float value = x[i * step] - largest;
    y[i * step] = arguments.log ? value - log_sum : std::exp(value) / sum;
  }
}

__global__ __launch_bounds__(kThreads) void softmax_grad_kernel(
    const __grid_constant__ SoftmaxGradArguments arguments) {
  const Lines& lines = arguments.lines;
  const std::int64_t line = warp_unit(), step = lines.inner;
  if (line >= lines.outer * lines.inner) return;
  const std::int64_t at = line_at(lines, line);
  const float *const y = arguments.y + at, *const dy = arguments.dy + at;
  float* const dx = arguments.dx + at;
  float sum = 0;
  for (std::int64_t i = lane(); i < lines.count; i += kWarp)
    sum += arguments.log ? dy[i * step] : y[i * step] * dy[i * step];
  sum = fold_warp<SumFold>(sum);
  for (std::int64_t i = lane(); i < lines.count; i += kWarp) {
    const float gradient = dy[i * step], result = y[i * step];
    dx[i * step] = arguments.log ? gradient - std::exp(result) * sum : result * (gradient - sum);
  }
}

template <typename Label>
__global__ __launch_bounds__(kThreads) void cross_entropy_kernel(
    const __grid_constant__ CrossEntropyArguments arguments) {
  const std::int64_t row = warp_unit(), classes = arguments.classes;
  if (row >= arguments.rows) return;
  const float* const x = arguments.logits + row * classes;
  float* const backprop = arguments.backprop + row * classes;
  const auto label = static_cast<std::int64_t>(static_cast<const Label*>(arguments.labels)[row]);
  const bool known = label >= 0 && label < classes;
  const float largest = largest_of(x, classes, 1);
  const float sum = sum_of_exponentials(x, largest, classes, 1);
  for (std::int64_t i = lane(); i < classes; i += kWarp) {
    const float probability = std::exp(x[i] - largest) / sum;
    backprop[i] = !known ? kNan : i == label ? probability - 1 : probability;
  }
  if (lane() == 0) arguments.loss[row] = known ? std::log(sum) - (x[label] - largest) : kNan;
}

}  // namespace

cudaError_t launch_softmax(cudaStream_t stream, const SoftmaxArguments& arguments) {
  const std::int64_t lines = arguments.lines.outer * arguments.lines.inner;
  if (lines * arguments.lines.count == 0) return cudaSuccess;  // a grid of no blocks is an error
  softmax_kernel<<<blocks_for_warps(lines), kThreads, 0, stream>>>(arguments);
  return cudaGetLastError();
}

cudaError_t launch_softmax_grad(cudaStream_t stream, const SoftmaxGradArguments& arguments) {
  const std::int64_t lines = arguments.lines.outer * arguments.lines.inner;
  if (lines * arguments.lines.count == 0) return cudaSuccess;
  softmax_grad_kernel<<<blocks_for_warps(lines), kThreads, 0, stream>>>(arguments);
  return cudaGetLastError();
}

cudaError_t launch_cross_entropy(cudaStream_t stream, const CrossEntropyArguments& arguments) {
  if (arguments.rows == 0) return cudaSuccess;
  const unsigned blocks = blocks_for_warps(arguments.rows);
  switch (arguments.label_type) {
    case ElementType::i32:
      cross_entropy_kernel<std::int32_t><<<blocks, kThreads, 0, stream>>>(arguments);
      break;
    case ElementType::i64:
      cross_entropy_kernel<std::int64_t><<<blocks, kThreads, 0, stream>>>(arguments);
      break;
    default: return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

}  // namespace kolo::cuda
