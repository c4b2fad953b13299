#include <kolo/core/kernels/cpu/normalization_loops.h>
#include <kolo/core/kernels/kernel.h>

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

}  // namespace
}  // namespace kolo
