#include <algorithm>
#include <cmath>
#include <cstdint>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/loops/normalization_loops.h>
#include <kolo/core/kernels/cpu/loops/softmax_loops.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/losses.h>

namespace kolo {
namespace {

template <typename T>
void l2_loss(KernelContext& context) {
  const Tensor& x = context.input(0);
  const double squares = detail::normalization_loops<T>().squares(x.data<T>(), T(0), x.elements());
  *context.output(0).data<T>() = static_cast<T>(squares / 2);
}

const RegisterKernel l2_loss_f32("L2Loss", "CPU", {DType::f32}, l2_loss<float>);
const RegisterKernel l2_loss_f64("L2Loss", "CPU", {DType::f64}, l2_loss<double>);

template <typename Label>
void check_labels(const Tensor& labels, std::int64_t classes) {
  const Label* values = labels.data<Label>();
  for (std::int64_t i = 0; i < labels.elements(); ++i)
    if (values[i] < 0 || values[i] >= classes)
      throw InvalidArgumentError(
          "Received a label value of {} which is outside the valid range of [0, {}): label {} of {}",
          values[i], classes, i, labels.elements());
}

// to = softmax(from), `count` > 0 numbers. Returns the logarithm of the sum of exponentials less `largest`,
// the largest of `from`.
template <typename T>
T softmax(const T* from, std::int64_t count, T* to, T& largest) {
  largest = *std::max_element(from, from + count);
  T sum(0);
  for (std::int64_t i = 0; i < count; ++i) sum += to[i] = std::exp(from[i] - largest);
  for (std::int64_t i = 0; i < count; ++i) to[i] /= sum;
  return std::log(sum);
}
template <>
float softmax(const float* from, std::int64_t count, float* to, float& largest) {
  const detail::SoftmaxLoops& loops = detail::softmax_loops();
  largest = loops.largest(from, count);
  const float sum = loops.exponentials(from, largest, to, count);
  loops.scale(to, 1 / sum, count);
  return std::log(sum);
}

// The op's outputs, and what its gradient is multiplied by.
struct LossOutputs {
  int loss, backprop;
  double scale;
};

template <typename T>
void scale_row(T* row, T factor, std::int64_t count) {
  if (factor != T(1)) std::for_each(row, row + count, [factor](T& x) { x *= factor; });
}

// Per example: loss = log(sum(exp(x − max))) − (x[label] − max), backprop = softmax(x) − one_hot(label),
// which may be written over x.
template <typename T, typename Label>
void cross_entropy(KernelContext& context, const LossOutputs& outputs) {
  const Tensor &logits = context.input(0), &labels = context.input(1);
  const std::int64_t rows = logits.shape().dim(0), classes = logits.shape().dim(1);
  check_labels<Label>(labels, classes);
  const T* x = logits.data<T>();
  const Label* label = labels.data<Label>();
  T* loss = context.output(outputs.loss).data<T>();
  T* backprop = context.output(outputs.backprop).data<T>();
  parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* from = x + row * classes;
      T* to = backprop + row * classes;
      const T of_label = from[label[row]];
      T largest;
      const T log_sum = softmax(from, classes, to, largest);
      loss[row] = log_sum - (of_label - largest);
      to[label[row]] -= T(1);
      scale_row(to, static_cast<T>(outputs.scale), classes);
    }
  });
}

template <typename T>
class CrossEntropy final : public Kernel {
 public:
  CrossEntropy(const KernelInit& init, LossOutputs outputs)
      : outputs_(outputs),
        function_(init.input_dtype(1) == DType::i32 ? cross_entropy<T, std::int32_t>
                                                    : cross_entropy<T, std::int64_t>) {}
  void compute(KernelContext& context) override { function_(context, outputs_); }

 private:
  LossOutputs outputs_;
  void (*function_)(KernelContext&, const LossOutputs&);
};

template <typename T>
std::unique_ptr<Kernel> make_cross_entropy(KernelInit& init) {
  return std::make_unique<CrossEntropy<T>>(init, LossOutputs{.loss = 0, .backprop = 1, .scale = 1});
}
template <typename T>
std::unique_ptr<Kernel> make_scaled_cross_entropy(KernelInit& init) {
  return std::make_unique<CrossEntropy<T>>(
      init, LossOutputs{.loss = 1, .backprop = 0, .scale = init.attr<double>("scale")});
}

template <typename T>
void scale_rows(KernelContext& context) {
  const Tensor& x = context.input(0);
  const std::int64_t rows = x.shape().dim(0), cols = x.shape().dim(1);
  const T *from = x.data<T>(), *factors = context.input(1).data<T>();
  T* to = context.output(0).data<T>();
  parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t i = row * cols; i < (row + 1) * cols; ++i) to[i] = from[i] * factors[row];
  });
}

const RegisterKernel cross_entropy_f32("SparseSoftmaxCrossEntropyWithLogits", "CPU", {DType::f32},
                                       make_cross_entropy<float>);
const RegisterKernel cross_entropy_f64("SparseSoftmaxCrossEntropyWithLogits", "CPU", {DType::f64},
                                       make_cross_entropy<double>);
const RegisterKernel scaled_cross_entropy_f32(detail::kScaledCrossEntropyOp, "CPU", {DType::f32},
                                              make_scaled_cross_entropy<float>);
const RegisterKernel scaled_cross_entropy_f64(detail::kScaledCrossEntropyOp, "CPU", {DType::f64},
                                              make_scaled_cross_entropy<double>);
const RegisterKernel scale_rows_f32("ScaleRows", "CPU", {DType::f32}, scale_rows<float>);
const RegisterKernel scale_rows_f64("ScaleRows", "CPU", {DType::f64}, scale_rows<double>);

}  // namespace

}  // namespace kolo
