#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include <kolo/core/kernels/cpu/element_types.h>
#include <kolo/core/kernels/host_kernels.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/nothing.h>

namespace kolo {
namespace {

class ConstKernel final : public Kernel {
 public:
  explicit ConstKernel(Tensor value) : value_(std::move(value)) {}
  void compute(KernelContext& context) override { context.output(0).copy_from(value_); }

 private:
  Tensor value_;
};

void fill(const Tensor& tensor, double value) {
  detail::with_type(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::fill_n(tensor.data<T>(), tensor.elements(), static_cast<T>(static_cast<detail::Computed<T>>(value)));
  });
}

class FillKernel final : public Kernel {
 public:
  explicit FillKernel(double value) : value_(value) {}
  void compute(KernelContext& context) override { fill(context.output(0), value_); }

 private:
  double value_;
};

// All types of numbers have zero bytes for zero.
void zeros_like(KernelContext& context) {
  std::fill_n(context.output(0).raw(), context.output(0).bytes(), std::byte{0});
}
void ones_like(KernelContext& context) { fill(context.output(0), 1); }
const RegisterKernel basic_kernels[] = {
    {"Placeholder", "CPU", {}, make_kernel<PlaceholderKernel>},
    {"Const",
     "CPU",
     {},
     [](KernelInit& init) -> std::unique_ptr<Kernel> {
       return std::make_unique<ConstKernel>(init.attr<Tensor>("value"));
     }},
    {"Fill",
     "CPU",
     {},
     [](KernelInit& init) -> std::unique_ptr<Kernel> {
       return std::make_unique<FillKernel>(init.attr<double>("value"));
     }},
    {"ZerosLike", "CPU", {}, zeros_like},
    {"OnesLike", "CPU", {}, ones_like},
    {"Identity", "CPU", {}, nothing},
    {"StopGradient", "CPU", {}, nothing},
    {"NoOp", "CPU", {}, nothing},
};

// The plan has memory for numbers alone.
void copy(KernelContext& context) {
  if (context.input(0).dtype() == DType::string) context.set_output(0, context.input(0).clone());
  else context.output(0).copy_from(context.input(0));
}

const RegisterKernel copy_kernel("Copy", "CPU", {}, copy);

}  // namespace

}  // namespace kolo
