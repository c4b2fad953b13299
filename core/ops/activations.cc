#include <kolo/core/ops/activations.h>

#include <string>
#include <vector>

#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

const std::vector<DType> kReal = {DType::f32, DType::f64};

// All gradients are computed from x, in one pass, by the op NAMEGrad(dy, x).
OpSchema activation(const char* name) {
  return OpSchema(name)
      .input("x", kReal)
      .attr("alpha", 1.0)
      .output("y")
      .in_place(0)
      .gradient([](Scope& s, const Node& op, Output dy) {
        return Outputs{s.add(op.op() + "Grad", {dy, op.input(0)}, {{"alpha", op.attr("alpha")}})};
      });
}
OpSchema activation_grad(const char* name) {
  return OpSchema(name)
      .input("dy", kReal)
      .input("x", "dy")
      .attr("alpha", 1.0)
      .output("dx")
      .shape(detail::alike)
      .in_place(0)
      .in_place(1);
}

const RegisterOp ops[] = {
    activation("Gelu"),      activation_grad("GeluGrad"),      // with the normal distribution
    activation("GeluTanh"),  activation_grad("GeluTanhGrad"),  // the approximation
    activation("Swish"),     activation_grad("SwishGrad"),
    activation("Elu"),       activation_grad("EluGrad"),
    activation("Selu"),      activation_grad("SeluGrad"),
    activation("LeakyRelu"), activation_grad("LeakyReluGrad"),
    activation("Softplus"),  activation_grad("SoftplusGrad"),
    activation("Relu6"),     activation_grad("Relu6Grad"),
};

}  // namespace

Output gelu(const Scope& s, Output x, bool approximate) {
  return s.add(approximate ? "GeluTanh" : "Gelu", {x});
}
Output swish(const Scope& s, Output x) { return s.add("Swish", {x}); }
Output elu(const Scope& s, Output x, double alpha) { return s.add("Elu", {x}, {{"alpha", alpha}}); }
Output selu(const Scope& s, Output x) { return s.add("Selu", {x}); }
Output leaky_relu(const Scope& s, Output x, double alpha) {
  return s.add("LeakyRelu", {x}, {{"alpha", alpha}});
}
Output softplus(const Scope& s, Output x) { return s.add("Softplus", {x}); }
Output relu6(const Scope& s, Output x) { return s.add("Relu6", {x}); }

}  // namespace kolo
