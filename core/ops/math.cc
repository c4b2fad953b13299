#include <kolo/core/ops/math.h>

#include <numbers>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/graph/op_schema.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/dtypes.h>
#include <kolo/core/ops/math_internal.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

using detail::summed_to_input;

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
    binary("Add", detail::kArithmetic, add_gradient),
    binary("Sub", detail::kArithmetic, sub_gradient),
    binary("Mul", detail::kArithmetic, mul_gradient),
    binary("Div", detail::kArithmetic, div_gradient),
    binary("Maximum", detail::kArithmetic, maximum_gradient),
    binary("Minimum", detail::kArithmetic, minimum_gradient),
    binary("Pow", detail::kReal, pow_gradient),
};

OpSchema unary(const char* name, const std::vector<DType>& types) {
  return OpSchema(name).input("x", types).output("y").in_place(0);
}
// From (dy, y), in one pass.
OpSchema unary_gradient(const char* name) {
  return OpSchema(name)
      .input("dy", detail::kReal)
      .input("y", "dy")
      .output("dx")
      .shape(detail::alike)
      .in_place(0);
}
Outputs one(Output dx) { return {dx}; }
Output times(const Scope& s, Output x, double factor) {
  return mul(s, x, fill(s, x.dtype(), Shape(), factor));
}

const RegisterOp unary_ops[] = {
    unary("Neg", detail::kArithmetic).gradient([](Scope& s, const Node&, Output dy) {
      return one(neg(s, dy));
    }),
    unary("Abs", detail::kArithmetic).gradient([](Scope& s, const Node& op, Output dy) {
      return one(mul(s, dy, sign(s, op.input(0))));
    }),
    unary("Sign", detail::kArithmetic).no_gradient(),
    unary("Square", detail::kArithmetic).gradient([](Scope& s, const Node& op, Output dy) {
      return one(mul(s, dy, times(s, op.input(0), 2)));
    }),
    unary("Sqrt", detail::kReal).gradient([](Scope& s, const Node& op, Output dy) {
      return one(div(s, times(s, dy, 0.5), op.output()));
    }),
    unary("Rsqrt", detail::kReal).gradient([](Scope& s, const Node& op, Output dy) {
      const Output y = op.output();
      return one(mul(s, times(s, dy, -0.5), mul(s, y, square(s, y))));
    }),
    unary("Exp", detail::kReal).gradient([](Scope& s, const Node& op, Output dy) {
      return one(mul(s, dy, op.output()));
    }),
    unary("Log", detail::kReal).gradient([](Scope& s, const Node& op, Output dy) {
      return one(div(s, dy, op.input(0)));
    }),
    unary("Tanh", detail::kReal).gradient([](Scope& s, const Node& op, Output dy) -> Outputs {
      return {s.add("TanhGrad", {dy, op.output()})};
    }),
    unary("Sigmoid", detail::kReal).gradient([](Scope& s, const Node& op, Output dy) -> Outputs {
      return {s.add("SigmoidGrad", {dy, op.output()})};
    }),
    unary("Relu", detail::kArithmetic).gradient([](Scope& s, const Node& op, Output dy) -> Outputs {
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
        .variadic("xs", detail::kArithmetic)
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

namespace {

const std::vector<DType> kComparable = {DType::f32,     DType::f64, DType::i32, DType::i64,
                                        DType::boolean, DType::u8,  DType::i8};

OpSchema comparison(const char* name, const std::vector<DType>& types = kComparable) {
  return OpSchema(name)
      .input("a", types)
      .input("b", "a")
      .output("y", DType::boolean)
      .no_gradient()
      .shape([](ShapeContext& c) { c.set_output(0, broadcast_shapes(c.input(0), c.input(1))); });
}

OpSchema predicate(const char* name) {
  return OpSchema(name).input("x", {DType::f32, DType::f64}).output("y", DType::boolean).no_gradient();
}

const RegisterOp comparisons[] = {
    comparison("Equal"),
    comparison("NotEqual"),
    comparison("Less"),
    comparison("LessEqual"),
    comparison("Greater"),
    comparison("GreaterEqual"),
    comparison("LogicalAnd", detail::kLogical).in_place(0).in_place(1),
    comparison("LogicalOr", detail::kLogical).in_place(0).in_place(1),
    OpSchema("LogicalNot").input("x", detail::kLogical).output("y").in_place(0).no_gradient(),
    predicate("IsNan"),
    predicate("IsInf"),
    predicate("IsFinite"),
};

const RegisterOp select_op(
    OpSchema("Select")
        .input("condition", {DType::boolean})
        .input("a", {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean, DType::u8, DType::i8,
                     DType::f16, DType::bf16})
        .input("b", "a")
        .output("y", "a")
        .in_place(1)
        .in_place(2)
        .shape([](ShapeContext& c) {
          c.set_output(0, broadcast_shapes(c.input(0), broadcast_shapes(c.input(1), c.input(2))));
        })
        .gradient([](Scope& s, const Node& op, Output dy) {
          const Output zero = zeros_like(s, dy), condition = op.input(0);
          return Outputs{Output(), detail::summed_to_input(s, select(s, condition, dy, zero), op, 1),
                         detail::summed_to_input(s, select(s, condition, zero, dy), op, 2)};
        }));

}  // namespace

Output equal(const Scope& s, Output a, Output b) { return s.add("Equal", {a, b}); }
Output not_equal(const Scope& s, Output a, Output b) { return s.add("NotEqual", {a, b}); }
Output less(const Scope& s, Output a, Output b) { return s.add("Less", {a, b}); }
Output less_equal(const Scope& s, Output a, Output b) { return s.add("LessEqual", {a, b}); }
Output greater(const Scope& s, Output a, Output b) { return s.add("Greater", {a, b}); }
Output greater_equal(const Scope& s, Output a, Output b) { return s.add("GreaterEqual", {a, b}); }
Output logical_and(const Scope& s, Output a, Output b) { return s.add("LogicalAnd", {a, b}); }
Output logical_or(const Scope& s, Output a, Output b) { return s.add("LogicalOr", {a, b}); }
Output logical_not(const Scope& s, Output x) { return s.add("LogicalNot", {x}); }
Output is_nan(const Scope& s, Output x) { return s.add("IsNan", {x}); }
Output is_inf(const Scope& s, Output x) { return s.add("IsInf", {x}); }
Output is_finite(const Scope& s, Output x) { return s.add("IsFinite", {x}); }
Output select(const Scope& s, Output condition, Output a, Output b) {
  return s.add("Select", {condition, a, b});
}
Output where(const Scope& s, Output condition, Output a, Output b) { return select(s, condition, a, b); }

namespace {

Output scalar(const Scope& s, double value, DType dtype) { return fill(s, dtype, Shape(), value); }

// `slope` makes dy/dx.
OpSchema function(const char* name, Output (*slope)(const Scope& s, const Node& op)) {
  return OpSchema(name)
      .input("x", {DType::f32, DType::f64})
      .output("y")
      .in_place(0)
      .gradient([slope](Scope& s, const Node& op, Output dy) { return Outputs{mul(s, dy, slope(s, op))}; });
}

const RegisterOp functions[] = {
    function("Reciprocal", [](const Scope& s, const Node& op) { return neg(s, square(s, op.output())); }),
    function("Log1p",
             [](const Scope& s, const Node& op) {
               const Output x = op.input(0);
               return reciprocal(s, add(s, x, scalar(s, 1, x.dtype())));
             }),
    function("Expm1",
             [](const Scope& s, const Node& op) {
               const Output y = op.output();
               return add(s, y, scalar(s, 1, y.dtype()));
             }),
    function("Sin", [](const Scope& s, const Node& op) { return cos(s, op.input(0)); }),
    function("Cos", [](const Scope& s, const Node& op) { return neg(s, sin(s, op.input(0))); }),
    function("Erf",
             [](const Scope& s, const Node& op) {
               const Output x = op.input(0);
               return mul(s, exp(s, neg(s, square(s, x))),
                          scalar(s, 2 * std::numbers::inv_sqrtpi, x.dtype()));
             }),
};

const RegisterOp squared_difference_op(OpSchema("SquaredDifference")
                                           .input("a", detail::kArithmetic)
                                           .input("b", "a")
                                           .output("y")
                                           .in_place(0)
                                           .in_place(1)
                                           .shape([](ShapeContext& c) {
                                             c.set_output(0, broadcast_shapes(c.input(0), c.input(1)));
                                           })
                                           .gradient([](Scope& s, const Node& op, Output dy) {
                                             const Output a = op.input(0), b = op.input(1);
                                             const Output da =
                                                 mul(s, dy, mul(s, sub(s, a, b), scalar(s, 2, a.dtype())));
                                             return Outputs{detail::summed_to_input(s, da, op, 0),
                                                            neg(s, detail::summed_to_input(s, da, op, 1))};
                                           }));

}  // namespace

Output reciprocal(const Scope& s, Output x) { return s.add("Reciprocal", {x}); }
Output log1p(const Scope& s, Output x) { return s.add("Log1p", {x}); }
Output expm1(const Scope& s, Output x) { return s.add("Expm1", {x}); }
Output sin(const Scope& s, Output x) { return s.add("Sin", {x}); }
Output cos(const Scope& s, Output x) { return s.add("Cos", {x}); }
Output erf(const Scope& s, Output x) { return s.add("Erf", {x}); }
Output squared_difference(const Scope& s, Output a, Output b) { return s.add("SquaredDifference", {a, b}); }

Output clip_by_value(const Scope& s, Output x, Output low, Output high) {
  if (auto slices = indexed_slices(x)) {
    slices->values = clip_by_value(s, slices->values, low, high);
    return to_dense(s, *slices);
  }
  const Scope inner = s.name_scope(s.wished_name("clip_by_value"));
  const Output clipped = maximum(inner, minimum(inner, x, high), low);
  if (!clipped.shape().is_compatible_with(x.shape()))
    throw InvalidArgumentError("clip_by_value: the limits are {} and {}; they must be broadcast to x, {}",
                               low.shape(), high.shape(), x.shape());
  return clipped;
}
Output clip_by_value(const Scope& s, Output x, double low, double high) {
  if (!(low <= high))
    throw InvalidArgumentError("clip_by_value: low is {} and high is {}; low must not be above high", low,
                               high);
  return clip_by_value(s, x, scalar(s, low, x.dtype()), scalar(s, high, x.dtype()));
}

namespace {

OpSchema rounding(const char* name) {
  return OpSchema(name).input("x", {DType::f32, DType::f64}).output("y").in_place(0).no_gradient();
}

OpSchema division(const char* name) {
  return OpSchema(name)
      .input("a", detail::kArithmetic)
      .input("b", "a")
      .output("y")
      .in_place(0)
      .in_place(1)
      .shape([](ShapeContext& c) { c.set_output(0, broadcast_shapes(c.input(0), c.input(1))); });
}

const RegisterOp rounding_ops[] = {
    rounding("Floor"),
    rounding("Ceil"),
    rounding("Round"),
    division("FloorDiv").no_gradient(),
    division("FloorMod").gradient([](Scope& s, const Node& op, Output dy) {
      const Output db = neg(s, mul(s, dy, floordiv(s, op.input(0), op.input(1))));
      return Outputs{detail::summed_to_input(s, dy, op, 0), detail::summed_to_input(s, db, op, 1)};
    }),
};

}  // namespace

Output floor(const Scope& s, Output x) { return s.add("Floor", {x}); }
Output ceil(const Scope& s, Output x) { return s.add("Ceil", {x}); }
Output round(const Scope& s, Output x) { return s.add("Round", {x}); }
Output floordiv(const Scope& s, Output a, Output b) { return s.add("FloorDiv", {a, b}); }
Output mod(const Scope& s, Output a, Output b) { return s.add("FloorMod", {a, b}); }

namespace {

using detail::kNumeric;

const RegisterOp cast_op(OpSchema("Cast")
                             .input("x", kNumeric)
                             .required_attr("dtype", DType::f32)
                             .output("y", "dtype")
                             .shape([](ShapeContext& c) {
                               if (c.attr<DType>("dtype") == DType::string)
                                 throw InvalidArgumentError("cast: {} to string; no type can be cast to it",
                                                            c.dtype(0));
                               c.set_output(0, c.input(0));
                             })
                             .gradient([](Scope& s, const Node& op, Output dy) {
                               const DType from = op.input(0).dtype();
                               return is_floating(from) && is_floating(dy.dtype())
                                          ? Outputs{cast(s, dy, from)}
                                          : Outputs{Output()};
                             }));

}  // namespace

Output cast(const Scope& s, Output x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (dtype == DType::string)
    throw InvalidArgumentError("cast: {} is {}; no type can be cast to string", x.name(), x.dtype());
  return s.add("Cast", {x}, {{"dtype", dtype}});
}

// Several element-wise ops in one pass over memory: the pass that fuses them makes the node.

namespace {

const RegisterOp fused_elementwise_op(OpSchema("FusedElementwise")
                                          .variadic("inputs")
                                          .required_attr("shape", Shape())
                                          .required_attr("ops", std::vector<std::string>{})
                                          .output("y")
                                          .shape([](ShapeContext& c) {
                                            c.set_output(0, c.attr<Shape>("shape"));
                                          })
                                          // The output's piece is written after all inputs' pieces were read.
                                          .in_place(0)
                                          .in_place(1)
                                          .in_place(2)
                                          .in_place(3)
                                          .in_place(4)
                                          .in_place(5)
                                          .made_by_pass());

void sum_like_shape(ShapeContext& c) {
  const Shape &dy = c.input(0), &like = c.input(1);
  bool fits = !dy.has_rank() || !like.has_rank() || like.rank() <= dy.rank();
  for (int axis = 1; fits && dy.has_rank() && like.has_rank() && axis <= like.rank(); ++axis) {
    const std::int64_t own = like.dim(-axis), sum_of = dy.dim(-axis);
    fits = own == 1 || own == sum_of || own < 0 || sum_of < 0;
  }
  if (!fits) throw InvalidArgumentError("sum_like: {} cannot be summed to {}", dy, like);
  c.set_output(0, like);
}

const RegisterOp sum_like_op(OpSchema("SumLike")
                                 .input("dy", detail::kArithmetic)
                                 .input("like", "dy")
                                 .output("dx")
                                 .shape(sum_like_shape)
                                 .in_place(0));

}  // namespace

Output sum_like(const Scope& s, Output dy, Output like) { return s.add("SumLike", {dy, like}); }

}  // namespace kolo

namespace kolo::detail {
namespace {

// True if `x` is certainly not repeated when it is broadcast against `other`.
bool keeps_shape(const Shape& x, const Shape& other) {
  if (!x.has_rank() || !other.has_rank() || x.rank() < other.rank()) return false;
  for (int axis = 1; axis <= other.rank(); ++axis)
    if (const std::int64_t dim = x.dim(-axis); (dim == 1 || dim == -1) && other.dim(-axis) != 1) return false;
  return true;
}

}  // namespace

Output summed_to_input(const Scope& s, Output dx, const Node& op, int i) {
  const Output x = op.input(i);
  for (int other = 0; other < op.num_inputs(); ++other)
    if (other != i && !keeps_shape(x.shape(), op.input(other).shape())) return sum_like(s, dx, x);
  return dx;
}

}  // namespace kolo::detail
