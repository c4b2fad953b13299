#include <cstdint>
#include <memory>
#include <string>

#include <kolo/core/kernels/cpu/activation_loops.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

using detail::Activation;

// Below the grain of cheap element-wise loops: an exponential each.
constexpr std::int64_t kActivationGrain = 4096;

class ActivationKernel final : public Kernel {
 public:
  ActivationKernel(Activation activation, const KernelInit& init)
      : loop_(detail::activation_loop(activation, init.input_dtype(0))), alpha_(init.attr<double>("alpha")) {}

  void compute(KernelContext& context) override {
    const Tensor &x = context.input(0), &y = context.output(0);
    const auto size = static_cast<std::int64_t>(size_of(x.dtype()));
    parallel_for(x.elements(), kActivationGrain, [&](std::int64_t begin, std::int64_t end) {
      loop_(x.raw() + begin * size, alpha_, y.raw() + begin * size, end - begin);
    });
  }

 private:
  detail::ActivationLoop loop_;
  double alpha_;
};

class ActivationGradKernel final : public Kernel {
 public:
  ActivationGradKernel(Activation activation, const KernelInit& init)
      : loop_(detail::activation_grad_loop(activation, init.input_dtype(0))),
        alpha_(init.attr<double>("alpha")) {}

  void compute(KernelContext& context) override {
    const Tensor &dy = context.input(0), &x = context.input(1), &dx = context.output(0);
    const auto size = static_cast<std::int64_t>(size_of(x.dtype()));
    parallel_for(x.elements(), kActivationGrain, [&](std::int64_t begin, std::int64_t end) {
      loop_(dy.raw() + begin * size, x.raw() + begin * size, alpha_, dx.raw() + begin * size, end - begin);
    });
  }

 private:
  detail::ActivationGradLoop loop_;
  double alpha_;
};

// The op and its gradient.
class RegisterActivation {
 public:
  RegisterActivation(const std::string& op, Activation activation)
      : value_(op, "CPU", {DType::f32, DType::f64}, factory<ActivationKernel>(activation)),
        gradient_(op + "Grad", "CPU", {DType::f32, DType::f64}, factory<ActivationGradKernel>(activation)) {}

 private:
  template <typename K>
  static KernelFactory factory(Activation activation) {
    return [activation](KernelInit& init) -> std::unique_ptr<Kernel> {
      return std::make_unique<K>(activation, init);
    };
  }
  RegisterKernel value_;
  RegisterKernel gradient_;
};

const RegisterActivation activations[] = {
    {"Gelu", Activation::gelu},         {"GeluTanh", Activation::gelu_tanh},
    {"Swish", Activation::swish},       {"Elu", Activation::elu},
    {"Selu", Activation::selu},         {"LeakyRelu", Activation::leaky_relu},
    {"Softplus", Activation::softplus}, {"Relu6", Activation::relu6},
};

}  // namespace
}  // namespace kolo
