#include <kolo/core/ops/elementwise.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/broadcast_gradient.h>
#include <kolo/core/ops/compare.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

using detail::summed_to_input;

const std::vector<DType> kArithmetic = {DType::f32, DType::f64, DType::i32, DType::i64};
const std::vector<DType> kReal = {DType::f32, DType::f64};

void broadcast(ShapeContext& c) { c.set_output(0, broadcast_shapes(c.input(0), c.input(1))); }

using BinaryGradient = Outputs (*)(Scope& s, const Node& op, Output dy);

OpSchema binary(const char* name, const std::vector<DType>& types, BinaryGradient gradient) {
  return OpSchema(name)
      .input("a", types)
      .input("b", "a")
      .output("y")
      .shape(broadcast)
      .in_place(0)
      .in_place(1)
      .gradient(gradient);
}

Outputs add_gradient(Scope& s, const Node& op, Output dy) {
  return {summed_to_input(s, dy, op, 0), summed_to_input(s, dy, op, 1)};
}
Outputs sub_gradient(Scope& s, const Node& op, Output dy) {
  return {summed_to_input(s, dy, op, 0), neg(s, summed_to_input(s, dy, op, 1))};
}
Outputs mul_gradient(Scope& s, const Node& op, Output dy) {
  return {summed_to_input(s, mul(s, dy, op.input(1)), op, 0),
          summed_to_input(s, mul(s, dy, op.input(0)), op, 1)};
}
Outputs div_gradient(Scope& s, const Node& op, Output dy) {
  const Output da = div(s, dy, op.input(1));  // d(a/b)/db = −(a/b)/b
  return {summed_to_input(s, da, op, 0), summed_to_input(s, neg(s, mul(s, da, op.output())), op, 1)};
}
// The gradient goes to the operand that was chosen.
Outputs choice_gradient(Scope& s, const Node& op, Output dy, Output chose_a) {
  const Output zero = zeros_like(s, dy);
  return {summed_to_input(s, select(s, chose_a, dy, zero), op, 0),
          summed_to_input(s, select(s, chose_a, zero, dy), op, 1)};
}
Outputs maximum_gradient(Scope& s, const Node& op, Output dy) {
  return choice_gradient(s, op, dy, greater_equal(s, op.input(0), op.input(1)));
}
Outputs minimum_gradient(Scope& s, const Node& op, Output dy) {
  return choice_gradient(s, op, dy, less_equal(s, op.input(0), op.input(1)));
}
Outputs pow_gradient(Scope& s, const Node& op, Output dy) {
  const Output a = op.input(0), b = op.input(1);
  const Output da = mul(s, b, pow(s, a, sub(s, b, fill(s, b.dtype(), Shape(), 1))));
  const Output log_a = select(s, greater(s, a, fill(s, a.dtype(), Shape(), 0)), log(s, a), zeros_like(s, a));
  return {summed_to_input(s, mul(s, dy, da), op, 0),
          summed_to_input(s, mul(s, dy, mul(s, op.output(), log_a)), op, 1)};
}

const RegisterOp binary_ops[] = {
    binary("Add", kArithmetic, add_gradient),
    binary("Sub", kArithmetic, sub_gradient),
    binary("Mul", kArithmetic, mul_gradient),
    binary("Div", kArithmetic, div_gradient),
    binary("Maximum", kArithmetic, maximum_gradient),
    binary("Minimum", kArithmetic, minimum_gradient),
    binary("Pow", kReal, pow_gradient),
};

OpSchema unary(const char* name, const std::vector<DType>& types) {
  return OpSchema(name).input("x", types).output("y").in_place(0);
}
// From (dy, y), in one pass.
OpSchema unary_gradient(const char* name) {
  return OpSchema(name).input("dy", kReal).input("y", "dy").output("dx").shape(detail::alike).in_place(0);
}
Outputs one(Output dx) { return {dx}; }
Output times(const Scope& s, Output x, double factor) {
  return mul(s, x, fill(s, x.dtype(), Shape(), factor));
}

const RegisterOp unary_ops[] = {
    unary("Neg", kArithmetic).gradient([](Scope& s, const Node&, Output dy) { return one(neg(s, dy)); }),
    unary("Abs", kArithmetic).gradient([](Scope& s, const Node& op, Output dy) {
      return one(mul(s, dy, sign(s, op.input(0))));
    }),
    unary("Sign", kArithmetic).no_gradient(),
    unary("Square", kArithmetic).gradient([](Scope& s, const Node& op, Output dy) {
      return one(mul(s, dy, times(s, op.input(0), 2)));
    }),
    unary("Sqrt", kReal).gradient([](Scope& s, const Node& op, Output dy) {
      return one(div(s, times(s, dy, 0.5), op.output()));
    }),
    unary("Rsqrt", kReal).gradient([](Scope& s, const Node& op, Output dy) {
      const Output y = op.output();
      return one(mul(s, times(s, dy, -0.5), mul(s, y, square(s, y))));
    }),
    unary("Exp", kReal).gradient([](Scope& s, const Node& op, Output dy) {
      return one(mul(s, dy, op.output()));
    }),
    unary("Log", kReal).gradient([](Scope& s, const Node& op, Output dy) {
      return one(div(s, dy, op.input(0)));
    }),
    unary("Tanh", kReal).gradient([](Scope& s, const Node& op, Output dy) -> Outputs {
      return {s.add("TanhGrad", {dy, op.output()})};
    }),
    unary("Sigmoid", kReal).gradient([](Scope& s, const Node& op, Output dy) -> Outputs {
      return {s.add("SigmoidGrad", {dy, op.output()})};
    }),
    unary("Relu", kArithmetic).gradient([](Scope& s, const Node& op, Output dy) -> Outputs {
      return {s.add("ReluGrad", {dy, op.output()})};
    }),
    unary_gradient("TanhGrad"),
    unary_gradient("SigmoidGrad"),
    // Piecewise linear: the gradient of the gradient is the same mask again.
    unary_gradient("ReluGrad").gradient([](Scope& s, const Node& op, Output ddx) -> Outputs {
      return {s.add("ReluGrad", {ddx, op.input(1)}), Output()};
    }),
};

const RegisterOp add_n_op(
    OpSchema("AddN")
        .variadic("xs", kArithmetic)
        .output("sum")
        .in_place(0)
        .shape([](ShapeContext& c) {
          if (c.num_inputs() == 0)
            throw InvalidArgumentError("AddN takes at least one tensor; none was given");
          Shape sum = c.input(0);
          for (int i = 1; i < c.num_inputs(); ++i) sum = sum.merged_with(c.input(i));
          c.set_output(0, sum);
        })
        .gradient([](Scope&, const Node& op, Output dy) { return Outputs(op.inputs().size(), dy); }));

}  // namespace

Output add(const Scope& s, Output a, Output b) { return s.add("Add", {a, b}); }
Output sub(const Scope& s, Output a, Output b) { return s.add("Sub", {a, b}); }
Output mul(const Scope& s, Output a, Output b) { return s.add("Mul", {a, b}); }
Output div(const Scope& s, Output a, Output b) { return s.add("Div", {a, b}); }
Output maximum(const Scope& s, Output a, Output b) { return s.add("Maximum", {a, b}); }
Output minimum(const Scope& s, Output a, Output b) { return s.add("Minimum", {a, b}); }
Output pow(const Scope& s, Output a, Output b) { return s.add("Pow", {a, b}); }
Output add_n(const Scope& s, const Outputs& xs) { return s.add("AddN", xs); }

Output neg(const Scope& s, Output x) { return s.add("Neg", {x}); }
Output abs(const Scope& s, Output x) { return s.add("Abs", {x}); }
Output sign(const Scope& s, Output x) { return s.add("Sign", {x}); }
Output square(const Scope& s, Output x) { return s.add("Square", {x}); }
Output relu(const Scope& s, Output x) { return s.add("Relu", {x}); }
Output sqrt(const Scope& s, Output x) { return s.add("Sqrt", {x}); }
Output rsqrt(const Scope& s, Output x) { return s.add("Rsqrt", {x}); }
Output exp(const Scope& s, Output x) { return s.add("Exp", {x}); }
Output log(const Scope& s, Output x) { return s.add("Log", {x}); }
Output tanh(const Scope& s, Output x) { return s.add("Tanh", {x}); }
Output sigmoid(const Scope& s, Output x) { return s.add("Sigmoid", {x}); }

}  // namespace kolo
