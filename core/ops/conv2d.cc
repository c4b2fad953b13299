#include <kolo/core/ops/conv2d.h>

#include <string>
#include <vector>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

void conv2d_shape(ShapeContext& c) {
  const Shape &images = c.input(0), &weights = c.input(1);
  if ((images.has_rank() && images.rank() != 4) || (weights.has_rank() && weights.rank() != 4))
    throw InvalidArgumentError(
        "conv2d: images are {} and weights are {}; they must be [N,C,H,W] and [out,C,kh,kw]", images,
        weights);
  const RowsCols strides = rows_cols(c.attr<std::vector<std::int64_t>>("strides"), "conv2d: strides");
  const Padding padding = padding_from_name(c.attr<std::string>("padding"));
  if (strides[0] < 1 || strides[1] < 1)
    throw InvalidArgumentError("conv2d: strides are {} and {}; both must be at least 1", strides[0],
                               strides[1]);
  if (!images.has_rank() || !weights.has_rank()) {
    c.set_output(0,
                 {images.has_rank() ? images.dim(0) : -1, weights.has_rank() ? weights.dim(0) : -1, -1, -1});
    return;
  }
  if (images.dim(1) >= 0 && weights.dim(1) >= 0 && images.dim(1) != weights.dim(1))
    throw InvalidArgumentError(
        "conv2d: images are {} and weights are {}; the channels of the images ({}) must equal the input "
        "channels of the weights ({})",
        images, weights, images.dim(1), weights.dim(1));
  if (weights.dim(2) < 0 || weights.dim(3) < 0) {
    c.set_output(0, {images.dim(0), weights.dim(0), -1, -1});
    return;
  }
  const auto [rows, cols] = window_axes(images, {weights.dim(2), weights.dim(3)}, strides, padding);
  c.set_output(0, {images.dim(0), weights.dim(0), rows.outputs, cols.outputs});
}

// One op for each of the two gradients, so that a step may run (and reduce) the weights' before or after the
// images'. They take images and weights both: one as an operand, the other for its shape.
Outputs conv2d_gradient(Scope& s, const Node& op, Output dy) {
  const AttrMap attrs{{"strides", op.attr("strides")}, {"padding", op.attr("padding")}};
  return {s.add("Conv2DBackpropInput", {op.input(0), op.input(1), dy}, attrs),
          s.add("Conv2DBackpropFilter", {op.input(0), op.input(1), dy}, attrs)};
}

OpSchema conv2d_grad_schema(const char* name, int shape_of) {
  return OpSchema(name)
      .input("images", {DType::f32, DType::f64})
      .input("weights", "images")
      .input("dy", "images")
      .required_attr("strides", std::vector<std::int64_t>{})
      .required_attr("padding", "SAME")
      .output("gradient")
      .shape([shape_of](ShapeContext& c) { c.set_output(0, c.input(shape_of)); });
}

const RegisterOp conv2d_op(OpSchema("Conv2D")
                               .input("images", {DType::f32, DType::f64})
                               .input("weights", "images")
                               .required_attr("strides", std::vector<std::int64_t>{})
                               .required_attr("padding", "SAME")
                               .output("y")
                               .shape(conv2d_shape)
                               .gradient(conv2d_gradient));
const RegisterOp conv2d_input_op(conv2d_grad_schema("Conv2DBackpropInput", 0));
const RegisterOp conv2d_filter_op(conv2d_grad_schema("Conv2DBackpropFilter", 1));

}  // namespace

Output conv2d(const Scope& s, Output images, Output weights, Conv2dOptions options) {
  return s.add("Conv2D", {images, weights},
               {{"strides", std::vector<std::int64_t>{options.strides[0], options.strides[1]}},
                {"padding", name(options.padding)}});
}

}  // namespace kolo
