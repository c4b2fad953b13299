#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/element_types.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

const std::vector<DType> kArithmetic = {DType::f32, DType::f64, DType::i32, DType::i64,
                                        DType::u8,  DType::i8,  DType::f16, DType::bf16};

// The session holds the memory and the plan refers to it.
void nothing(KernelContext&) {}

// Input 0 is the variable, input 1 the value.
void check_shapes(const KernelContext& context) {
  const Shape& variable = context.variable(0).value.shape();
  const Shape& value = context.input(1).shape();
  if (variable != value)
    throw InvalidArgumentError("Assign requires shapes of both tensors to match. lhs shape= {} rhs shape= {}",
                               variable, value);
}

void assign(KernelContext& context) {
  check_shapes(context);
  VariableStorage& variable = context.variable(0);
  if (variable.value.raw() != context.input(1).raw()) variable.value.copy_from(context.input(1));
  variable.initialized = true;
}

template <bool kAdd>
void assign_update(KernelContext& context) {
  check_shapes(context);
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

const RegisterKernel kernels[] = {
    {"Variable", "CPU", {}, nothing},
    {"VariablePart", "CPU", {}, nothing},
    {"Assign", "CPU", {}, assign},
    {"AssignAdd", "CPU", kArithmetic, assign_update<true>},
    {"AssignSub", "CPU", kArithmetic, assign_update<false>},
};

}  // namespace
}  // namespace kolo
