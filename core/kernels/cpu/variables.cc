#include <algorithm>
#include <cstring>
#include <vector>

#include <kolo/core/kernels/cpu/element_types.h>
#include <kolo/core/kernels/host_kernels.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/nothing.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/kernels/row_numbers.h>

namespace kolo {
namespace {

const std::vector<DType> kAssignable = {DType::f32, DType::f64, DType::i32, DType::i64,
                                        DType::u8,  DType::i8,  DType::f16, DType::bf16};

void assign(KernelContext& context) {
  check_assigned_shape(context);
  VariableStorage& variable = context.variable(0);
  if (variable.value.raw() != context.input(1).raw()) variable.value.copy_from(context.input(1));
  variable.initialized = true;
}

template <bool kAdd>
void assign_update(KernelContext& context) {
  check_assigned_shape(context);
  const Tensor& variable = context.variable(0).value;
  detail::with_type(variable.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = detail::Computed<T>;
    T* to = variable.data<T>();
    const T* by = context.input(1).data<T>();
    parallel_for(variable.elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const C now = static_cast<C>(to[i]), change = static_cast<C>(by[i]);
        to[i] = static_cast<T>(static_cast<C>(kAdd ? now + change : now - change));
      }
    });
  });
}

const RegisterKernel variable_kernels[] = {
    {"Variable", "CPU", {}, nothing},
    {"VariablePart", "CPU", {}, nothing},
    {"Assign", "CPU", {}, assign},
    {"AssignAdd", "CPU", kAssignable, assign_update<true>},
    {"AssignSub", "CPU", kAssignable, assign_update<false>},
};

// Each thread goes through all indices and takes those of its own rows, so that updates of one row come in
// their order on any number of threads.
template <typename Take>
void for_rows(const Tensor& to, const Tensor& indices, const Take& take) {
  const std::int64_t rows = to.shape().dim(0), count = indices.elements();
  detail::with_row_numbers(indices, rows, [&](const auto* numbers) {
    if (count == 0 || to.elements() == 0) return;
    const std::int64_t grain =
        std::max<std::int64_t>(1, kElementGrain * rows / (count * (to.elements() / rows)));
    parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 0; i < count; ++i)
        if (numbers[i] >= begin && numbers[i] < end) take(static_cast<std::int64_t>(numbers[i]), i);
    });
  });
}

template <typename T, bool kAdd>
void scatter_change(KernelContext& context) {
  const Tensor& variable = context.variable(0).value;
  const std::int64_t width = variable.elements() / std::max<std::int64_t>(1, variable.shape().dim(0));
  const T* updates = context.input(2).data<T>();
  for_rows(variable, context.input(1), [&](std::int64_t row, std::int64_t i) {
    T* to = variable.data<T>() + row * width;
    const T* by = updates + i * width;
    for (std::int64_t k = 0; k < width; ++k) to[k] = kAdd ? to[k] + by[k] : to[k] - by[k];
  });
}

void scatter_update(KernelContext& context) {
  const Tensor &variable = context.variable(0).value, &updates = context.input(2);
  const auto bytes = variable.bytes() / std::max<std::size_t>(1, variable.shape().dim(0));
  for_rows(variable, context.input(1), [&](std::int64_t row, std::int64_t i) {
    std::memcpy(variable.raw() + row * bytes, updates.raw() + i * bytes, bytes);
  });
}

const RegisterKernel scatter_kernels[] = {
    {"ScatterAdd", "CPU", {DType::f32}, scatter_change<float, true>},
    {"ScatterAdd", "CPU", {DType::f64}, scatter_change<double, true>},
    {"ScatterAdd", "CPU", {DType::i32}, scatter_change<std::int32_t, true>},
    {"ScatterAdd", "CPU", {DType::i64}, scatter_change<std::int64_t, true>},
    {"ScatterSub", "CPU", {DType::f32}, scatter_change<float, false>},
    {"ScatterSub", "CPU", {DType::f64}, scatter_change<double, false>},
    {"ScatterSub", "CPU", {DType::i32}, scatter_change<std::int32_t, false>},
    {"ScatterSub", "CPU", {DType::i64}, scatter_change<std::int64_t, false>},
    {"ScatterUpdate", "CPU", {}, scatter_update},
};

}  // namespace

}  // namespace kolo
