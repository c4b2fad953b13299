#include <kolo/core/ops/bias_add.h>

#include <string>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

int channel_axis(const ShapeContext& c, const Shape& x) {
  const auto format = c.attr<std::string>("data_format");
  if (format != "NCHW" && format != "NHWC")
    throw InvalidArgumentError("bias_add: data_format \"{}\" is neither NCHW nor NHWC", format);
  if (x.rank() < 2) throw InvalidArgumentError("bias_add: x is {}; it must have at least 2 dimensions", x);
  return x.rank() == 4 && format == "NCHW" ? 1 : x.rank() - 1;
}

void bias_add_shape(ShapeContext& c) {
  const Shape &x = c.input(0), &bias = c.input(1);
  if (bias.has_rank() && bias.rank() != 1)
    throw InvalidArgumentError("bias_add: bias is {}; it must have 1 dimension", bias);
  c.set_output(0, x);
  if (!x.has_rank()) return;
  const int axis = channel_axis(c, x);
  if (!bias.has_rank()) return;
  const std::int64_t channels = x.dim(axis), biases = bias.dim(0);
  if (channels >= 0 && biases >= 0 && channels != biases)
    throw InvalidArgumentError(
        "bias_add: x is {} and bias is {}; dimension {} of x ({}) must equal the number of biases ({})", x,
        bias, axis, channels, biases);
  c.set_output(0, x.with_dim(axis, channels >= 0 ? channels : biases));
}

void bias_add_grad_shape(ShapeContext& c) {
  const Shape& dy = c.input(0);
  c.set_output(0, {dy.has_rank() ? dy.dim(channel_axis(c, dy)) : -1});
}

const RegisterOp bias_add_op(
    OpSchema("BiasAdd")
        .input("x", {DType::f32, DType::f64})
        .input("bias", "x")
        .attr("data_format", "NCHW")
        .output("y")
        .shape(bias_add_shape)
        .in_place(0)
        .gradient([](Scope& s, const Node& op, Output dy) {
          return Outputs{dy, s.add("BiasAddGrad", {dy}, {{"data_format", op.attr("data_format")}})};
        }));

const RegisterOp bias_add_grad_op(OpSchema("BiasAddGrad")
                                      .input("dy", {DType::f32, DType::f64})
                                      .attr("data_format", "NCHW")
                                      .output("dbias")
                                      .shape(bias_add_grad_shape));

}  // namespace

Output bias_add(const Scope& s, Output x, Output bias, DataFormat format) {
  return s.add("BiasAdd", {x, bias}, {{"data_format", format == DataFormat::nchw ? "NCHW" : "NHWC"}});
}

}  // namespace kolo
