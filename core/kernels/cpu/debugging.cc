#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <fmt/format.h>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/element_types.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>

namespace kolo {
namespace {

// "1 2 3..."; at most `limit` elements, −1: all.
std::string elements_of(const Tensor& tensor, std::int64_t limit) {
  const std::int64_t count = limit < 0 ? tensor.elements() : std::min(limit, tensor.elements());
  std::string text;
  const auto add = [&](const auto& element) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", element);
  };
  if (tensor.dtype() == DType::string) {
    for (std::int64_t i = 0; i < count; ++i) add(tensor.data<std::string>()[i]);
  } else {
    detail::with_type(tensor.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (std::int64_t i = 0; i < count; ++i) add(static_cast<detail::Computed<T>>(tensor.data<T>()[i]));
    });
  }
  return count < tensor.elements() ? text + "..." : text;
}

void hand_on(KernelContext& context) {
  const Tensor& x = context.input(0);
  if (x.dtype() == DType::string) return context.set_output(0, x);
  if (context.output(0).raw() != x.raw()) context.output(0).copy_from(x);
}

class PrintKernel final : public Kernel {
 public:
  explicit PrintKernel(const KernelInit& init)
      : message_(init.attr<std::string>("message")),
        left_(init.attr<std::int64_t>("first_n")),
        summarize_(init.attr<std::int64_t>("summarize")) {}

  void compute(KernelContext& context) override {
    hand_on(context);
    if (left_ == 0) return;
    if (left_ > 0) --left_;
    std::string line = message_;
    for (int i = 1; i < context.num_inputs(); ++i)
      line += fmt::format("[{}]", elements_of(context.input(i), summarize_));
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);
  }

 private:
  std::string message_;
  std::int64_t left_;
  std::int64_t summarize_;
};

class AssertKernel final : public Kernel {
 public:
  explicit AssertKernel(const KernelInit& init) : summarize_(init.attr<std::int64_t>("summarize")) {}

  void compute(KernelContext& context) override {
    if (context.input(0).value<bool>()) return;
    std::string values;
    for (int i = 1; i < context.num_inputs(); ++i)
      values += fmt::format(" [{}]", elements_of(context.input(i), summarize_));
    throw InvalidArgumentError("assertion failed:{}", values);
  }

 private:
  std::int64_t summarize_;
};

class CheckNumericsKernel final : public Kernel {
 public:
  explicit CheckNumericsKernel(const KernelInit& init) : message_(init.attr<std::string>("message")) {}

  void compute(KernelContext& context) override {
    if (context.input(0).dtype() == DType::f32) check<float>(context.input(0));
    else check<double>(context.input(0));
    hand_on(context);
  }

 private:
  // x · 0 is NaN exactly where x is NaN or infinite: one sum tells whether there is anything to look for.
  template <typename T>
  void check(const Tensor& x) const {
    const T* values = x.data<T>();
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < x.elements(); ++i) sum += values[i] * T(0);
    if (sum == 0) return;
    const bool nan = std::any_of(values, values + x.elements(), [](T v) { return std::isnan(v); });
    const bool infinite = std::any_of(values, values + x.elements(), [](T v) { return std::isinf(v); });
    throw InvalidArgumentError("{} : Tensor had {} values", message_,
                               nan && infinite ? "Inf and NaN"
                               : nan           ? "NaN"
                                               : "Inf");
  }

  std::string message_;
};

const RegisterKernel print("Print", "CPU", {}, make_kernel<PrintKernel>);
const RegisterKernel assert_kernel("Assert", "CPU", {}, make_kernel<AssertKernel>);
const RegisterKernel check_numerics("CheckNumerics", "CPU", {DType::f32, DType::f64},
                                    make_kernel<CheckNumericsKernel>);

}  // namespace
}  // namespace kolo
