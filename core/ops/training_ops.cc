#include <kolo/core/ops/training_ops.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

const std::vector<DType> kTrained = {DType::f32, DType::f64};

// Slots and gradient have the variable's shape, everything between them is a scalar.
ShapeFunction slots_then_scalars(int slots) {
  return [slots](ShapeContext& c) {
    Shape shape = c.input(0);
    const int gradient = c.num_inputs() - 1;
    for (int i = 1; i < c.num_inputs(); ++i) {
      const bool scalar = i > slots && i < gradient;
      const Shape& wanted = scalar ? Shape() : shape;
      if (!c.input(i).is_compatible_with(wanted))
        throw InvalidArgumentError("the variable is {}, so input {} must be {}; it is {}", shape, i, wanted,
                                   c.input(i));
    }
    c.set_output(0, std::move(shape));
  };
}

const RegisterOp gradient_descent_op(OpSchema("ApplyGradientDescent")
                                         .input("var", kTrained)
                                         .updates()
                                         .input("learning_rate", "var")
                                         .input("gradient", "var")
                                         .output("new_value")
                                         .shape(slots_then_scalars(0))
                                         .no_gradient());

const RegisterOp momentum_op(OpSchema("ApplyMomentum")
                                 .input("var", kTrained)
                                 .updates()
                                 .input("accumulator", "var")
                                 .updates()
                                 .input("learning_rate", "var")
                                 .input("momentum", "var")
                                 .input("gradient", "var")
                                 .attr("use_nesterov", false)
                                 .output("new_value")
                                 .shape(slots_then_scalars(1))
                                 .no_gradient());

const RegisterOp adagrad_op(OpSchema("ApplyAdagrad")
                                .input("var", kTrained)
                                .updates()
                                .input("accumulator", "var")
                                .updates()
                                .input("learning_rate", "var")
                                .input("gradient", "var")
                                .output("new_value")
                                .shape(slots_then_scalars(1))
                                .no_gradient());

const RegisterOp adam_op(OpSchema("ApplyAdam")
                             .input("var", kTrained)
                             .updates()
                             .input("m", "var")
                             .updates()
                             .input("v", "var")
                             .updates()
                             .input("beta1_power", "var")
                             .input("beta2_power", "var")
                             .input("learning_rate", "var")
                             .input("beta1", "var")
                             .input("beta2", "var")
                             .input("epsilon", "var")
                             .input("gradient", "var")
                             .output("new_value")
                             .shape(slots_then_scalars(2))
                             .no_gradient());

}  // namespace

Output apply_gradient_descent(const Scope& s, const Variable& v, Output learning_rate, Output gradient) {
  return s.colocate_with(v.ref()).add("ApplyGradientDescent", {v.ref(), learning_rate, gradient});
}

Output apply_momentum(const Scope& s, const Variable& v, const Variable& a, const MomentumScalars& scalars,
                      Output gradient, bool use_nesterov) {
  return s.colocate_with(v.ref()).add("ApplyMomentum",
                                      {v.ref(), a.ref(), scalars.learning_rate, scalars.momentum, gradient},
                                      {{"use_nesterov", use_nesterov}});
}

Output apply_adagrad(const Scope& s, const Variable& v, const Variable& a, Output learning_rate,
                     Output gradient) {
  return s.colocate_with(v.ref()).add("ApplyAdagrad", {v.ref(), a.ref(), learning_rate, gradient});
}

Output apply_adam(const Scope& s, const Variable& v, const Variable& m, const Variable& w,
                  const AdamScalars& scalars, Output gradient) {
  return s.colocate_with(v.ref()).add(
      "ApplyAdam", {v.ref(), m.ref(), w.ref(), scalars.beta1_power, scalars.beta2_power,
                    scalars.learning_rate, scalars.beta1, scalars.beta2, scalars.epsilon, gradient});
}

}  // namespace kolo
