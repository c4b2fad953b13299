#include <kolo/core/kernels/cuda/launch_losses.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <kolo/core/kernels/elements/folds.h>

#include "../launches.h"

namespace kolo::cuda {
namespace {

using fake_cuda::device_read;
using fake_cuda::device_write;
using fake_cuda::launch;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::int64_t elements_of(const Lines& lines) { return lines.outer * lines.count * lines.inner; }

// Calls work(first element) for each line.
template <typename Work>
void for_each_line(const Lines& lines, const Work& work) {
  for (std::int64_t outer = 0; outer < lines.outer; ++outer)
    for (std::int64_t inner = 0; inner < lines.inner; ++inner)
      work(outer * lines.count * lines.inner + inner);
}

struct Exponentials {
  float largest;
  float sum;  // of exp(x − largest)
};
Exponentials exponentials_of(const float* x, std::int64_t count, std::int64_t step) {
  Exponentials found{elements::MaxFold::start<float>(), 0};
  for (std::int64_t i = 0; i < count; ++i)
    found.largest = elements::MaxFold::join(found.largest, x[i * step]);
  for (std::int64_t i = 0; i < count; ++i) found.sum += std::exp(x[i * step] - found.largest);
  return found;
}

template <typename Label>
cudaError_t cross_entropy(cudaStream_t stream, const CrossEntropyArguments& arguments) {
  const std::int64_t rows = arguments.rows, classes = arguments.classes;
  const float* const logits = device_read<float>(arguments.logits, rows * classes);
  const Label* const labels = device_read<Label>(arguments.labels, rows);
  float* const loss = device_write<float>(arguments.loss, rows);
  float* const all_backprop = device_write<float>(arguments.backprop, rows * classes);
  return launch("cross_entropy", stream, [=] {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* const x = logits + row * classes;
      float* const backprop = all_backprop + row * classes;
      const auto label = static_cast<std::int64_t>(labels[row]);
      const bool known = label >= 0 && label < classes;
      const auto [largest, sum] = exponentials_of(x, classes, 1);
      loss[row] = known ? std::log(sum) - (x[label] - largest) : kNan;
      for (std::int64_t i = 0; i < classes; ++i) {
        const float probability = std::exp(x[i] - largest) / sum;
        backprop[i] = !known ? kNan : i == label ? probability - 1 : probability;
      }
    }
  });
}

}  // namespace

cudaError_t launch_softmax(cudaStream_t stream, const SoftmaxArguments& arguments) {
  const Lines lines = arguments.lines;
  if (elements_of(lines) == 0) return cudaSuccess;
  const float* const all_x = device_read<float>(arguments.x, elements_of(lines));
  float* const all_y = device_write<float>(arguments.y, elements_of(lines));
  return launch("softmax", stream, [=, log = arguments.log] {
    for_each_line(lines, [&](std::int64_t at) {
      const float* const x = all_x + at;
      float* const y = all_y + at;
      const auto [largest, sum] = exponentials_of(x, lines.count, lines.inner);
      for (std::int64_t i = 0; i < lines.count * lines.inner; i += lines.inner)
        y[i] = log ? x[i] - largest - std::log(sum) : std::exp(x[i] - largest) / sum;
    });
  });
}

cudaError_t launch_softmax_grad(cudaStream_t stream, const SoftmaxGradArguments& arguments) {
  const Lines lines = arguments.lines;
  if (elements_of(lines) == 0) return cudaSuccess;
  const float* const all_y = device_read<float>(arguments.y, elements_of(lines));
  const float* const all_dy = device_read<float>(arguments.dy, elements_of(lines));
  float* const all_dx = device_write<float>(arguments.dx, elements_of(lines));
  return launch("softmax_grad", stream, [=, log = arguments.log] {
    for_each_line(lines, [&](std::int64_t at) {
      const float *const y = all_y + at, *const dy = all_dy + at;
      float* const dx = all_dx + at;
      const std::int64_t end = lines.count * lines.inner;
      float sum = 0;
      for (std::int64_t i = 0; i < end; i += lines.inner) sum += log ? dy[i] : y[i] * dy[i];
      for (std::int64_t i = 0; i < end; i += lines.inner)
        dx[i] = log ? dy[i] - std::exp(y[i]) * sum : y[i] * (dy[i] - sum);
    });
  });
}

cudaError_t launch_cross_entropy(cudaStream_t stream, const CrossEntropyArguments& arguments) {
  if (arguments.rows == 0) return cudaSuccess;
  switch (arguments.label_type) {
    case ElementType::i32: return cross_entropy<std::int32_t>(stream, arguments);
    case ElementType::i64: return cross_entropy<std::int64_t>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace kolo::cuda
