#include <memory>
#include <type_traits>

#include <kolo/core/kernels/cpu/element_types.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

class RangeKernel final : public Kernel {
 public:
  explicit RangeKernel(KernelInit& init)
      : start_(init.attr<double>("start")), delta_(init.attr<double>("delta")) {}

  void compute(KernelContext& context) override {
    const Tensor& y = context.output(0);
    detail::with_type(y.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_arithmetic_v<T>) fill(y.data<T>(), y.elements());
    });
  }

 private:
  // Each number from its position: a sum of deltas would gather their rounding. Whole numbers are exact in
  // double.
  template <typename T>
  void fill(T* y, std::int64_t count) const {
    parallel_for(count, kElementGrain, [=, this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        y[i] = static_cast<T>(start_ + static_cast<double>(i) * delta_);
    });
  }
  double start_;
  double delta_;
};

const RegisterKernel range("Range", "CPU", {DType::f32, DType::f64, DType::i32, DType::i64},
                           [](KernelInit& init) -> std::unique_ptr<Kernel> {
                             return std::make_unique<RangeKernel>(init);
                           });

}  // namespace
}  // namespace kolo
