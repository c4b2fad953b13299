// An op of this program's own: softsign, y = x / (1 + |x|), with its gradient and its kernel for CPUs.
#include <cmath>
#include <cstdio>

#include <kolo/kolo.h>

using namespace kolo;

namespace {

const RegisterOp softsign_op(OpSchema("Softsign")
                                 .input("x", {DType::f32})
                                 .output("y")
                                 .gradient([](Scope& s, const Node& op, Output dy) {
                                   const Output x = op.input(0);
                                   return Outputs{div(s, dy, square(s, add(s, abs(s, x), ones_like(s, x))))};
                                 }));

void compute_softsign(KernelContext& context) {
  const float* x = context.input(0).data<float>();
  float* y = context.output(0).data<float>();
  for (std::int64_t i = 0; i < context.input(0).elements(); ++i) y[i] = x[i] / (1 + std::abs(x[i]));
}
const RegisterKernel softsign_on_cpus("Softsign", "CPU", {DType::f32}, compute_softsign);

Output softsign(const Scope& s, Output x) { return s.add("Softsign", {x}); }

const RegisterOnnxForm softsign_in_onnx("Softsign", [](OnnxNode& n) {
  return std::vector<std::string>{n.add("Softsign", n.inputs())};
});

}  // namespace

int main() {
  Graph graph;
  Scope s(graph);
  const auto x = placeholder(s, DType::f32, {-1});
  const auto y = softsign(s, x);
  const auto slope = gradients(s, {y}, {x})[0];

  Session session(graph);
  const auto values = session.run({y, slope}, {{x, Tensor::of<float>({3}, {-1, 0, 3})}});
  // The gradient against finite differences.
  constexpr float kStep = 1e-2f;
  const Tensor above = session.run(y, {{x, Tensor::of<float>({3}, {-1 + kStep, kStep, 3 + kStep})}});
  const Tensor below = session.run(y, {{x, Tensor::of<float>({3}, {-1 - kStep, -kStep, 3 - kStep})}});
  for (int i = 0; i < 3; ++i) {
    const float difference = (above.data<float>()[i] - below.data<float>()[i]) / (2 * kStep);
    std::printf("softsign %.4f, slope %.4f, by differences %.4f\n", values[0].data<float>()[i],
                values[1].data<float>()[i], difference);
  }
}
