#include <kolo/core/ops/normalization.h>

#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/inference_form.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

// Input 0 is x; `names` are those of the inputs behind it that have one element for each channel. Returns the
// shape of those.
Shape check_inputs(const ShapeContext& c, std::initializer_list<const char*> names) {
  const Shape& x = c.input(0);
  if (x.has_rank() && x.rank() < 2)
    throw InvalidArgumentError("batch_norm: x is {}; it must be [N,C] or [N,C,…]", x);
  Shape channels{x.has_rank() ? x.dim(1) : -1};
  int i = 0;
  for (const char* const name : names) {
    ++i;
    if (!c.input(i).is_compatible_with(channels))
      throw InvalidArgumentError(
          "batch_norm: x is {} and its {} is {}; that must be {}, one for each channel", x, name, c.input(i),
          channels);
    channels = channels.merged_with(c.input(i));
  }
  const double epsilon = c.attr<double>("epsilon");
  if (!std::isfinite(epsilon) || epsilon < 0)
    throw InvalidArgumentError("batch_norm: epsilon is {}; it must be finite and not negative", epsilon);
  return channels;
}

constexpr std::initializer_list<const char*> kForwardInputs = {"scale", "offset", "mean", "variance"};

OpSchema with_inputs(const char* name, const char* mean, const char* variance) {
  return OpSchema(name)
      .input("x", {DType::f32, DType::f64})
      .input("scale", "x")
      .input("offset", "x")
      .input(mean, "x")
      .input(variance, "x")
      .required_attr("epsilon", 0.0)
      .output("y")
      .in_place(0);
}

const RegisterOp batch_norm_op(with_inputs("BatchNorm", "moving_mean", "moving_variance")
                                   .required_attr("momentum", 0.0)
                                   .output("mean")
                                   .output("variance")
                                   .output("new_moving_mean")
                                   .output("new_moving_variance")
                                   .shape([](ShapeContext& c) {
                                     const Shape channels = check_inputs(c, kForwardInputs);
                                     const double momentum = c.attr<double>("momentum");
                                     if (!(momentum >= 0 && momentum <= 1))
                                       throw InvalidArgumentError(
                                           "batch_norm: momentum is {}; it must be from 0 to 1", momentum);
                                     c.set_output(0, c.input(0));
                                     for (int i = 1; i < 5; ++i) c.set_output(i, channels);
                                   })
                                   .gradient([](Scope& s, const Node& op, const Outputs& dy) {
                                     for (std::size_t i = 1; i < dy.size(); ++i)
                                       if (dy[i])
                                         throw UnimplementedError(
                                             "{}: the gradient of its output {} is not defined; that of 0 is",
                                             describe(op), i);
                                     if (!dy[0]) return Outputs(5);
                                     const Operation grad =
                                         s.add("BatchNormGrad",
                                               {op.input(0), op.input(1), op.output(1), op.output(2), dy[0]},
                                               {{"epsilon", op.attr("epsilon")}});
                                     return Outputs{grad.output(0), grad.output(1), grad.output(2), {}, {}};
                                   }));

const RegisterOp batch_norm_grad_op(
    OpSchema("BatchNormGrad")
        .input("x", {DType::f32, DType::f64})
        .input("scale", "x")
        .input("mean", "x")
        .input("variance", "x")
        .input("dy", "x")
        .required_attr("epsilon", 0.0)
        .output("dx")
        .output("dscale")
        .output("doffset")
        .in_place(4)
        .shape([](ShapeContext& c) {
          const Shape channels = check_inputs(c, {"scale", "mean", "variance"});
          detail::check_input(c, 4, c.input(0), "as x");
          c.set_output(0, c.input(0).merged_with(c.input(4)));
          c.set_output(1, channels);
          c.set_output(2, channels);
        }));

std::vector<std::int64_t> all_but_channels(const Output& x) {
  if (!x.shape().has_rank())
    throw InvalidArgumentError(
        "batch_norm_inference: the number of dimensions of {} must be known for its "
        "gradient",
        x.name());
  std::vector<std::int64_t> axes{0};
  for (int axis = 2; axis < x.shape().rank(); ++axis) axes.push_back(axis);
  return axes;
}

// Affine in x, scale and offset: each gradient is the op itself with other operands, or a sum over it.
Outputs inference_gradient(Scope& s, const Node& op, Output dy) {
  const Output x = op.input(0), scale = op.input(1), mean = op.input(3), variance = op.input(4);
  const double epsilon = op.attr<double>("epsilon");
  const std::vector<std::int64_t> axes = all_but_channels(x);
  const Output zero = zeros_like(s, scale);
  const Output normalized = batch_norm_inference(s, x, ones_like(s, scale), zero, mean, variance, epsilon);
  return {batch_norm_inference(s, dy, scale, zero, zero, variance, epsilon),
          reduce_sum(s, mul(s, dy, normalized), {.axes = axes}),
          reduce_sum(s, dy, {.axes = axes}),
          {},
          {}};
}

const RegisterOp batch_norm_inference_op(with_inputs("BatchNormInference", "mean", "variance")
                                             .shape([](ShapeContext& c) {
                                               check_inputs(c, kForwardInputs);
                                               c.set_output(0, c.input(0));
                                             })
                                             .gradient(inference_gradient));

const RegisterInferenceForm batch_norm_form("BatchNorm", [](const Scope& s, const Node& op,
                                                            const Outputs& in) {
  const Output y = batch_norm_inference(s, in[0], in[1], in[2], in[3], in[4], op.attr<double>("epsilon"));
  return Outputs{y, in[3], in[4], in[3], in[4]};
});

}  // namespace

BatchNormResult batch_norm(const Scope& s, Output x, Output scale, Output offset, Output moving_mean,
                           Output moving_variance, BatchNormOptions options) {
  const Operation op = s.add("BatchNorm", {x, scale, offset, moving_mean, moving_variance},
                             {{"epsilon", options.epsilon}, {"momentum", options.momentum}});
  return {op.output(0), op.output(1), op.output(2), op.output(3), op.output(4)};
}

Output batch_norm_inference(const Scope& s, Output x, Output scale, Output offset, Output mean,
                            Output variance, double epsilon) {
  return s.add("BatchNormInference", {x, scale, offset, mean, variance}, {{"epsilon", epsilon}});
}

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

const RegisterOp sum_layer_norm_op(OpSchema(detail::kSumLayerNormOp)
                                       .input("x", {DType::f32, DType::f64})
                                       .input("scale", "x")
                                       .input("offset", "x")
                                       .input("added", "x")
                                       .variadic("bias", {DType::f32, DType::f64})
                                       .required_attr("epsilon", 0.0)
                                       .output("y")
                                       .output("mean")
                                       .output("inverse_deviation")
                                       .output("sum")
                                       .in_place(0)
                                       .shape([](ShapeContext& c) {
                                         layer_norm_shape(c);
                                         detail::check_input(c, 3, c.input(0), "as x");
                                         if (c.num_inputs() > 4)
                                           detail::check_input(c, 4, c.input(1), "a number for each column");
                                         c.set_output(3, c.input(0));
                                       })
                                       .made_by_pass());

const RegisterOp sum_layer_norm_grad_op(OpSchema(detail::kSumLayerNormGradOp)
                                            .input("x", {DType::f32, DType::f64})
                                            .input("scale", "x")
                                            .input("mean", "x")
                                            .input("inverse_deviation", "x")
                                            .input("dy", "x")
                                            .input("added", "x")
                                            .output("dx")
                                            .output("dscale")
                                            .output("doffset")
                                            .in_place(5)
                                            .shape([](ShapeContext& c) {
                                              layer_norm_grad_shape(c);
                                              detail::check_input(c, 5, c.input(0), "as x");
                                            })
                                            .made_by_pass());

}  // namespace

Output layer_norm(const Scope& s, Output x, Output scale, Output offset, double epsilon) {
  return s.add("LayerNorm", {x, scale, offset}, {{"epsilon", epsilon}});
}

}  // namespace kolo
