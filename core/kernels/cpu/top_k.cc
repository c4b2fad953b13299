#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <type_traits>

#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/cpu/row_numbers.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

// Rows that are worth a thread of their own.
std::int64_t row_grain(std::int64_t columns) {
  return std::max<std::int64_t>(1, kElementGrain / std::max<std::int64_t>(1, columns));
}

template <typename T>
bool is_larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  return a > b;
}

// The best so far are a heap with the worst of them in front; it lies in the output, so that no other memory
// is needed.
template <typename T>
void top_of_row(const T* x, std::int64_t columns, std::int64_t k, T* values, std::int32_t* indices) {
  const auto better = [x](std::int32_t a, std::int32_t b) {
    return is_larger(x[a], x[b]) || (!is_larger(x[b], x[a]) && a < b);
  };
  std::int32_t* end = indices + k;
  std::iota(indices, end, 0);
  std::make_heap(indices, end, better);
  for (std::int64_t i = k; i < columns; ++i) {
    const auto candidate = static_cast<std::int32_t>(i);
    if (!better(candidate, indices[0])) continue;
    std::pop_heap(indices, end, better);
    end[-1] = candidate;
    std::push_heap(indices, end, better);
  }
  std::sort_heap(indices, end, better);
  for (std::int64_t i = 0; i < k; ++i) values[i] = x[indices[i]];
}

template <typename T>
void top_k(KernelContext& context) {
  const Tensor& x = context.input(0);
  const std::int64_t k = context.output(0).shape().dims().back(), columns = x.shape().dims().back();
  if (k == 0 || x.elements() == 0) return;
  const T* from = x.data<T>();
  T* values = context.output(0).data<T>();
  std::int32_t* indices = context.output(1).data<std::int32_t>();
  parallel_for(x.elements() / columns, row_grain(columns), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      top_of_row(from + row * columns, columns, k, values + row * k, indices + row * k);
  });
}

template <typename T>
void top_k_grad(KernelContext& context) {
  const Tensor& dx = context.output(0);
  const std::int64_t k = context.input(0).shape().dims().back(), columns = dx.shape().dims().back();
  if (dx.elements() == 0) return;
  detail::with_row_numbers(context.input(1), columns, [](const auto*) {});
  const T* dy = context.input(0).data<T>();
  const std::int32_t* indices = context.input(1).data<std::int32_t>();
  T* to = dx.data<T>();
  parallel_for(dx.elements() / columns, row_grain(columns), [=](std::int64_t begin, std::int64_t end) {
    std::fill(to + begin * columns, to + end * columns, T(0));
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t i = row * k; i < (row + 1) * k; ++i) to[row * columns + indices[i]] = dy[i];
  });
}

class InTopKKernel final : public Kernel {
 public:
  explicit InTopKKernel(KernelInit& init) : k_(init.attr<std::int64_t>("k")) {}

  void compute(KernelContext& context) override {
    const bool narrow = context.input(1).dtype() == DType::i32;
    if (context.input(0).dtype() == DType::f32)
      return narrow ? run<float, std::int32_t>(context) : run<float, std::int64_t>(context);
    return narrow ? run<double, std::int32_t>(context) : run<double, std::int64_t>(context);
  }

 private:
  template <typename T, typename Index>
  void run(const KernelContext& context) const {
    const Tensor& predictions = context.input(0);
    const std::int64_t classes = predictions.shape().dims()[1];
    const T* x = predictions.data<T>();
    const Index* targets = context.input(1).data<Index>();
    bool* y = context.output(0).data<bool>();
    parallel_for(predictions.shape().dims()[0], row_grain(classes),
                 [=, this](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row)
                     y[row] = is_among_top(x + row * classes, classes, targets[row]);
                 });
  }

  template <typename T>
  bool is_among_top(const T* x, std::int64_t classes, std::int64_t target) const {
    if (target < 0 || target >= classes) return false;
    std::int64_t larger = 0;
    for (std::int64_t i = 0; i < classes; ++i) {
      if (!std::isfinite(x[i])) return false;
      larger += x[i] > x[target] ? 1 : 0;
    }
    return larger < k_;
  }

  std::int64_t k_;
};

const RegisterKernel kernels[] = {
    {"TopK", "CPU", {DType::f32}, top_k<float>},
    {"TopK", "CPU", {DType::f64}, top_k<double>},
    {"TopK", "CPU", {DType::i32}, top_k<std::int32_t>},
    {"TopK", "CPU", {DType::i64}, top_k<std::int64_t>},
    {"TopKGrad", "CPU", {DType::f32}, top_k_grad<float>},
    {"TopKGrad", "CPU", {DType::f64}, top_k_grad<double>},
    {"InTopK", "CPU", {DType::f32, DType::f64}, KernelFactory([](KernelInit& init) {
       return std::make_unique<InTopKKernel>(init);
     })},
};

}  // namespace
}  // namespace kolo
