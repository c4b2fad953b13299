#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include <kolo/core/kernels/cpu/detail/onednn.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

// All but the last dimension are rows.
Shape as_matrix(const Shape& shape) {
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape.dim(i);
  return {rows, shape.dim(-1)};
}

std::optional<detail::OneDnnCall> plan_softmax(const KernelInit& init) {
  const auto matrix = detail::row_major(DType::f32, as_matrix(init.input_shape(0)));
  const dnnl::softmax_forward::desc pass(dnnl::prop_kind::forward_training, matrix, 1);
  dnnl::softmax_forward::primitive_desc chosen(pass, detail::own_scratch(), detail::onednn_engine(), true);
  if (!chosen || !detail::skip_reference(chosen)) return std::nullopt;
  return detail::OneDnnCall(dnnl::softmax_forward(chosen), chosen.scratchpad_desc(),
                            {{DNNL_ARG_SRC, matrix, matrix}}, {{DNNL_ARG_DST, matrix, matrix}});
}

std::optional<detail::OneDnnCall> plan_softmax_grad(const KernelInit& init) {
  const auto matrix = detail::row_major(DType::f32, as_matrix(init.input_shape(0)));
  const dnnl::softmax_forward::primitive_desc forward({dnnl::prop_kind::forward_training, matrix, 1},
                                                      detail::onednn_engine());
  dnnl::softmax_backward::primitive_desc chosen({matrix, matrix, 1}, detail::own_scratch(),
                                                detail::onednn_engine(), forward, true);
  if (!chosen || !detail::skip_reference(chosen)) return std::nullopt;
  return detail::OneDnnCall(dnnl::softmax_backward(chosen), chosen.scratchpad_desc(),
                            {{DNNL_ARG_DST, matrix, matrix}, {DNNL_ARG_DIFF_DST, matrix, matrix}},
                            {{DNNL_ARG_DIFF_SRC, matrix, matrix}});
}

std::unique_ptr<Kernel> make_onednn_softmax(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0}, plan_softmax);
}
std::unique_ptr<Kernel> make_onednn_softmax_grad(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0, 1}, plan_softmax_grad);
}

template <typename T>
void softmax_rows(KernelContext& context) {
  const std::int64_t rows = as_matrix(context.input(0).shape()).dim(0),
                     cols = context.input(0).shape().dim(-1);
  const T* x = context.input(0).data<T>();
  T* y = context.output(0).data<T>();
  if (cols == 0) return;
  parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T *from = x + row * cols, largest = *std::max_element(from, from + cols);
      T* to = y + row * cols;
      T sum(0);
      for (std::int64_t i = 0; i < cols; ++i) sum += to[i] = std::exp(from[i] - largest);
      for (std::int64_t i = 0; i < cols; ++i) to[i] /= sum;
    }
  });
}

// dx = y · (dy − sum(y · dy))
template <typename T>
void softmax_grad_rows(KernelContext& context) {
  const std::int64_t rows = as_matrix(context.input(0).shape()).dim(0),
                     cols = context.input(0).shape().dim(-1);
  const T *y = context.input(0).data<T>(), *dy = context.input(1).data<T>();
  T* dx = context.output(0).data<T>();
  parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      T sum(0);
      for (std::int64_t i = row * cols; i < (row + 1) * cols; ++i) sum += y[i] * dy[i];
      for (std::int64_t i = row * cols; i < (row + 1) * cols; ++i) dx[i] = y[i] * (dy[i] - sum);
    }
  });
}

const RegisterKernel onednn_softmax("Softmax", "CPU", {DType::f32}, make_onednn_softmax, 1);
const RegisterKernel softmax_f32("Softmax", "CPU", {DType::f32}, softmax_rows<float>);
const RegisterKernel softmax_f64("Softmax", "CPU", {DType::f64}, softmax_rows<double>);
const RegisterKernel onednn_softmax_grad("SoftmaxGrad", "CPU", {DType::f32}, make_onednn_softmax_grad, 1);
const RegisterKernel softmax_grad_f32("SoftmaxGrad", "CPU", {DType::f32}, softmax_grad_rows<float>);
const RegisterKernel softmax_grad_f64("SoftmaxGrad", "CPU", {DType::f64}, softmax_grad_rows<double>);

}  // namespace
}  // namespace kolo
