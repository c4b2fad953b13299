#include <kolo/core/ops/math.h>

#include <numbers>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/broadcast_gradient.h>
#include <kolo/core/ops/elementwise.h>

namespace kolo {
namespace {

const std::vector<DType> kArithmetic = {DType::f32, DType::f64, DType::i32, DType::i64};

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
                                           .input("a", kArithmetic)
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

}  // namespace kolo
