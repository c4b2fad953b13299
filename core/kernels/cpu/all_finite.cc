#include <atomic>
#include <cstdint>
#include <memory>

#include <kolo/core/kernels/cpu/element_types.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

// x · 0 is 0 exactly where x is finite, else NaN: one sum tells.
template <typename T>
bool is_finite(const T* x, std::int64_t begin, std::int64_t end) {
  using Number = detail::Computed<T>;
  Number sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = begin; i < end; ++i) sum += static_cast<Number>(x[i]) * Number(0);
  return sum == 0;
}

template <typename T>
bool is_finite(const Tensor& x) {
  std::atomic<bool> finite{true};
  parallel_for(x.elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
    if (!is_finite(x.data<T>(), begin, end)) finite.store(false);
  });
  return finite.load();
}

bool is_finite(const Tensor& x) {
  switch (x.dtype()) {
    case DType::f32: return is_finite<float>(x);
    case DType::f64: return is_finite<double>(x);
    case DType::f16: return is_finite<Half>(x);
    default: return is_finite<BFloat16>(x);
  }
}

void all_finite(KernelContext& context) {
  bool finite = true;
  for (int i = 0; finite && i < context.num_inputs(); ++i) finite = is_finite(context.input(i));
  *context.output(0).data<bool>() = finite;
}

const RegisterKernel all_finite_kernel("AllFinite", "CPU", {DType::f32, DType::f64, DType::f16, DType::bf16},
                                       all_finite);

}  // namespace
}  // namespace kolo
