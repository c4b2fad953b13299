#include <cmath>

#include <kolo/core/kernels/cpu/detail/update_rules.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

template <typename T>
T* updated(const KernelContext& context, int i) {
  return context.variable(i).value.data<T>();
}

template <typename T>
T scalar(const KernelContext& context, int i) {
  return *context.input(i).data<T>();
}

template <typename T>
void apply(const KernelContext& context, const detail::UpdateRule<T>& rule) {
  detail::apply_rule(rule, context.input(0).elements());
}

template <typename T>
void gradient_descent(KernelContext& context) {
  apply<T>(context, detail::GradientDescentRule<T>{.v = updated<T>(context, 0),
                                                   .gradient = context.input(2).data<T>(),
                                                   .rate = scalar<T>(context, 1)});
}

template <typename T>
void adagrad(KernelContext& context) {
  apply<T>(context, detail::AdagradRule<T>{.v = updated<T>(context, 0),
                                           .a = updated<T>(context, 1),
                                           .gradient = context.input(3).data<T>(),
                                           .rate = scalar<T>(context, 2)});
}

template <typename T>
void adam(KernelContext& context) {
  const T one = 1;
  const T beta1_power = scalar<T>(context, 3);
  const T beta2_power = scalar<T>(context, 4);
  apply<T>(context, detail::AdamRule<T>{
                        .v = updated<T>(context, 0),
                        .m = updated<T>(context, 1),
                        .w = updated<T>(context, 2),
                        .gradient = context.input(9).data<T>(),
                        .rate = scalar<T>(context, 5) * std::sqrt(one - beta2_power) / (one - beta1_power),
                        .one_minus_beta1 = one - scalar<T>(context, 6),
                        .one_minus_beta2 = one - scalar<T>(context, 7),
                        .epsilon = scalar<T>(context, 8)});
}

template <typename T>
class MomentumKernel final : public Kernel {
 public:
  explicit MomentumKernel(bool use_nesterov) : use_nesterov_(use_nesterov) {}
  void compute(KernelContext& context) override {
    apply<T>(context, detail::MomentumRule<T>{.v = updated<T>(context, 0),
                                              .a = updated<T>(context, 1),
                                              .gradient = context.input(4).data<T>(),
                                              .rate = scalar<T>(context, 2),
                                              .momentum = scalar<T>(context, 3),
                                              .use_nesterov = use_nesterov_});
  }

 private:
  bool use_nesterov_;
};

template <typename T>
std::unique_ptr<Kernel> make_momentum(KernelInit& init) {
  return std::make_unique<MomentumKernel<T>>(init.attr<bool>("use_nesterov"));
}

const RegisterKernel gradient_descent_f32("ApplyGradientDescent", "CPU", {DType::f32},
                                          gradient_descent<float>);
const RegisterKernel gradient_descent_f64("ApplyGradientDescent", "CPU", {DType::f64},
                                          gradient_descent<double>);
const RegisterKernel momentum_f32("ApplyMomentum", "CPU", {DType::f32}, make_momentum<float>);
const RegisterKernel momentum_f64("ApplyMomentum", "CPU", {DType::f64}, make_momentum<double>);
const RegisterKernel adagrad_f32("ApplyAdagrad", "CPU", {DType::f32}, adagrad<float>);
const RegisterKernel adagrad_f64("ApplyAdagrad", "CPU", {DType::f64}, adagrad<double>);
const RegisterKernel adam_f32("ApplyAdam", "CPU", {DType::f32}, adam<float>);
const RegisterKernel adam_f64("ApplyAdam", "CPU", {DType::f64}, adam<double>);

}  // namespace
}  // namespace kolo
