// Softmax and the losses made of it, a line of elements at a time. See launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>
#include <kolo/core/kernels/elements/bad_value.h>

namespace kolo::cuda {

/// Lines of `count` elements that are `inner` apart: tensors [outer, count, inner].
struct Lines {
  std::int64_t outer;
  std::int64_t count;
  std::int64_t inner;
};

/// y = exp(x − max) / Σ exp(x − max) along each line, or (log) the logarithm of that. y may be x.
struct SoftmaxArguments {
  bool log;
  const float* x;
  float* y;
  Lines lines;
};
cudaError_t launch_softmax(cudaStream_t stream, const SoftmaxArguments& arguments);

/// dx = y · (dy − Σ y · dy), of the op's output y; (log) dx = dy − exp(y) · Σ dy. dx may be dy.
struct SoftmaxGradArguments {
  bool log;
  const float* y;
  const float* dy;
  float* dx;
  Lines lines;
};
cudaError_t launch_softmax_grad(cudaStream_t stream, const SoftmaxGradArguments& arguments);

/// For each row of logits [rows, classes]: loss = log(Σ exp(x − max)) − (x[label] − max) and backprop =
/// (softmax(x) − one_hot(label)) · scale, which may be written over the logits. A label outside [0, classes)
/// is noted in `bad`, which may not be null; its loss and its row of backprop are NaN. labels: i32 or i64.
struct CrossEntropyArguments {
  const float* logits;
  const void* labels;
  ElementType label_type;
  float* loss;      // [rows]
  float* backprop;  // [rows, classes]
  float scale;
  std::int64_t rows;
  std::int64_t classes;
  elements::BadValue* bad;
};
cudaError_t launch_cross_entropy(cudaStream_t stream, const CrossEntropyArguments& arguments);

}  // namespace kolo::cuda
