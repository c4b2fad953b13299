#include <kolo/core/ops/layer_norm.h>

#include <cmath>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

Shape without_last(const Shape& x) {
  if (!x.has_rank()) return x;
  std::vector<std::int64_t> dims = x.dims();
  dims.pop_back();
  return Shape(std::move(dims));
}

void check_has_rows(const Shape& x) {
  if (x.has_rank() && x.rank() < 1)
    throw InvalidArgumentError("layer_norm: x is a scalar; it must have at least 1 dimension");
}

void layer_norm_shape(ShapeContext& c) {
  const Shape& x = c.input(0);
  check_has_rows(x);
  const Shape row{x.has_rank() ? x.dim(-1) : -1};
  for (int i = 1; i < 3; ++i)
    if (!c.input(i).is_compatible_with(row))
      throw InvalidArgumentError("layer_norm: x is {} and its {} is {}; that must be {}", x,
                                 i == 1 ? "scale" : "offset", c.input(i), row);
  const double epsilon = c.attr<double>("epsilon");
  if (!std::isfinite(epsilon) || epsilon < 0)
    throw InvalidArgumentError("layer_norm: epsilon is {}; it must be finite and not negative", epsilon);
  c.set_output(0, x);
  c.set_output(1, without_last(x));
  c.set_output(2, without_last(x));
}

void layer_norm_grad_shape(ShapeContext& c) {
  const Shape& x = c.input(0);
  check_has_rows(x);
  const Shape row{x.has_rank() ? x.dim(-1) : -1};
  detail::check_input(c, 1, row, "a scale for each column of x");
  for (int i = 2; i < 4; ++i) detail::check_input(c, i, without_last(x), "one number for each row of x");
  detail::check_input(c, 4, x, "as x");
  c.set_output(0, x.merged_with(c.input(4)));
  for (const int o : {1, 2}) c.set_output(o, row.merged_with(c.input(1)));
}

// Outputs 1 and 2, the mean and 1 / √(variance + epsilon) of each row, are for the gradient.
const RegisterOp layer_norm_op(OpSchema("LayerNorm")
                                   .input("x", {DType::f32, DType::f64})
                                   .input("scale", "x")
                                   .input("offset", "x")
                                   .required_attr("epsilon", 0.0)
                                   .output("y")
                                   .output("mean")
                                   .output("inverse_deviation")
                                   .in_place(0)
                                   .shape(layer_norm_shape)
                                   .gradient([](Scope& s, const Node& op, const Outputs& dy) {
                                     if (dy[1] || dy[2])
                                       throw UnimplementedError(
                                           "{}: the gradient of its statistics is not defined; that of y is",
                                           describe(op));
                                     if (!dy[0]) return Outputs(3);
                                     const Operation grad =
                                         s.add("LayerNormGrad",
                                               {op.input(0), op.input(1), op.output(1), op.output(2), dy[0]});
                                     return Outputs{grad.output(0), grad.output(1), grad.output(2)};
                                   }));

const RegisterOp layer_norm_grad_op(OpSchema("LayerNormGrad")
                                        .input("x", {DType::f32, DType::f64})
                                        .input("scale", "x")
                                        .input("mean", "x")
                                        .input("inverse_deviation", "x")
                                        .input("dy", "x")
                                        .output("dx")
                                        .output("dscale")
                                        .output("doffset")
                                        .shape(layer_norm_grad_shape));

}  // namespace

Output layer_norm(const Scope& s, Output x, Output scale, Output offset, double epsilon) {
  return s.add("LayerNorm", {x, scale, offset}, {{"epsilon", epsilon}});
}

}  // namespace kolo
