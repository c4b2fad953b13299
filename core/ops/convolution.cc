#include <kolo/core/ops/convolution.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/shape_checks.h>
#include <kolo/core/ops/shapes.h>

namespace kolo {
namespace {

// Rounded up; numerators are never negative here.
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

WindowAxis window_axis(std::int64_t size, std::int64_t window, std::int64_t stride, Padding padding) {
  if (window < 1 || stride < 1)
    throw InvalidArgumentError("a sliding window of {} elements with stride {}: both must be at least 1",
                               window, stride);
  if (size < 0) return {size, window, stride, -1, 0, 0};
  if (padding == Padding::valid) {
    if (window > size)
      throw InvalidArgumentError(
          "Negative dimension size caused by subtracting {} from {}: the window is larger than the "
          "image; use padding SAME or a smaller window",
          window, size);
    return {size, window, stride, (size - window) / stride + 1, 0, 0};
  }
  const std::int64_t outputs = ceil_div(size, stride);
  const std::int64_t padded = std::max<std::int64_t>(0, (outputs - 1) * stride + window - size);
  return {size, window, stride, outputs, padded / 2, padded - padded / 2};
}

OutputRange outputs_inside(const WindowAxis& axis, std::int64_t offset) {
  // 0 ≤ stride · o + offset − pad_before < size
  const std::int64_t shift = axis.pad_before - offset;
  const std::int64_t begin = ceil_div(std::max<std::int64_t>(0, shift), axis.stride);
  const std::int64_t end = ceil_div(std::max<std::int64_t>(0, axis.size + shift), axis.stride);
  return {std::min(begin, axis.outputs), std::max(begin, std::min(end, axis.outputs))};
}

const char* name(Padding padding) { return padding == Padding::same ? "SAME" : "VALID"; }

Padding padding_from_name(const std::string& text) {
  if (text == "SAME") return Padding::same;
  if (text == "VALID") return Padding::valid;
  throw InvalidArgumentError("padding \"{}\" is neither SAME nor VALID", text);
}

std::array<WindowAxis, 2> window_axes(const Shape& images, const RowsCols& window, const RowsCols& strides,
                                      Padding padding) {
  return {window_axis(images.dim(2), window[0], strides[0], padding),
          window_axis(images.dim(3), window[1], strides[1], padding)};
}

RowsCols rows_cols(const std::vector<std::int64_t>& numbers, const char* what) {
  if (numbers.size() != 2)
    throw InvalidArgumentError("{} has {} numbers; it must have two, for rows and columns", what,
                               numbers.size());
  // Places in images, their sizes times strides, must not overflow.
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  if (numbers[0] > kMax || numbers[1] > kMax)
    throw InvalidArgumentError("{} is {} and {}; both must fit in 32 bits", what, numbers[0], numbers[1]);
  return {numbers[0], numbers[1]};
}

namespace {

void check_ranks(const char* name, const Shape& images, const Shape& weights, const char* weights_are) {
  if ((images.has_rank() && images.rank() != 4) || (weights.has_rank() && weights.rank() != 4))
    throw InvalidArgumentError("{}: images are {} and weights are {}; they must be [N,C,H,W] and {}", name,
                               images, weights, weights_are);
}

RowsCols checked_strides(const ShapeContext& c, const char* name) {
  const RowsCols strides = rows_cols(c.attr<std::vector<std::int64_t>>("strides"), "conv2d: strides");
  if (strides[0] < 1 || strides[1] < 1)
    throw InvalidArgumentError("{}: strides are {} and {}; both must be at least 1", name, strides[0],
                               strides[1]);
  return strides;
}

void check_groups(const Shape& images, const Shape& weights, std::int64_t groups) {
  if (groups < 1) throw InvalidArgumentError("conv2d: groups is {}; it must be at least 1", groups);
  if (weights.dim(0) >= 0 && weights.dim(0) % groups != 0)
    throw InvalidArgumentError(
        "conv2d: weights are {} for {} groups; the filters ({}) must be a multiple of those", weights, groups,
        weights.dim(0));
  if (images.dim(1) < 0 || weights.dim(1) < 0 ||
      images.dim(1) == detail::checked_multiply(weights.dim(1), groups))
    return;
  throw InvalidArgumentError(
      "conv2d: images are {} and weights are {}; the channels of the images ({}) must equal the input "
      "channels of the weights ({}){}",
      images, weights, images.dim(1), weights.dim(1),
      groups == 1 ? "" : fmt::format(" times {} groups", groups));
}

// What a convolution of inputs 0 and 1 makes.
Shape conv2d_results(const ShapeContext& c) {
  const Shape &images = c.input(0), &weights = c.input(1);
  check_ranks("conv2d", images, weights, "[out,C,kh,kw]");
  const RowsCols strides = checked_strides(c, "conv2d");
  const Padding padding = padding_from_name(c.attr<std::string>("padding"));
  if (!images.has_rank() || !weights.has_rank())
    return {images.has_rank() ? images.dim(0) : -1, weights.has_rank() ? weights.dim(0) : -1, -1, -1};
  check_groups(images, weights, c.attr<std::int64_t>("groups"));
  if (weights.dim(2) < 0 || weights.dim(3) < 0) return {images.dim(0), weights.dim(0), -1, -1};
  const auto [rows, cols] = window_axes(images, {weights.dim(2), weights.dim(3)}, strides, padding);
  return {images.dim(0), weights.dim(0), rows.outputs, cols.outputs};
}

AttrMap window_attrs(const Node& op) {
  return {{"strides", op.attr("strides")}, {"padding", op.attr("padding")}, {"groups", op.attr("groups")}};
}

// One op for each of the two gradients, so that a step may run (and reduce) the weights' before or after the
// images'. They take images and weights both: one as an operand, the other for its shape.
Outputs conv2d_gradient(Scope& s, const Node& op, Output dy) {
  return {s.add("Conv2DBackpropInput", {op.input(0), op.input(1), dy}, window_attrs(op)),
          s.add("Conv2DBackpropFilter", {op.input(0), op.input(1), dy}, window_attrs(op))};
}

OpSchema with_window(const char* name) {
  return OpSchema(name)
      .input("images", {DType::f32, DType::f64})
      .input("weights", "images")
      .required_attr("strides", std::vector<std::int64_t>{})
      .required_attr("padding", "SAME")
      .attr("groups", 1);
}

OpSchema conv2d_grad_schema(const char* name, int shape_of) {
  return with_window(name).input("dy", "images").output("gradient").shape([shape_of](ShapeContext& c) {
    detail::check_input(c, 2, conv2d_results(c), "as the results of the convolution");
    c.set_output(0, c.input(shape_of));
  });
}

// One dimension of a transposed convolution's result. asked: 0 where the default is wanted.
std::int64_t transposed_size(std::int64_t size, std::int64_t window, std::int64_t stride, Padding padding,
                             std::int64_t asked) {
  if (size < 0 || (asked == 0 && padding == Padding::valid && window < 0)) return asked == 0 ? -1 : asked;
  if (asked == 0)
    return detail::checked_add(detail::checked_multiply(size, stride),
                               padding == Padding::valid ? std::max<std::int64_t>(window - stride, 0) : 0);
  if (asked < 0 || (window >= 0 && window_axis(asked, window, stride, padding).outputs != size))
    throw InvalidArgumentError(
        "conv2d_transpose: output_size is {} for {} rows or columns, a window of {} and stride {}; a "
        "convolution of "
        "the result must have that many again",
        asked, size, window, stride);
  return asked;
}

void conv2d_transpose_shape(ShapeContext& c) {
  const Shape &images = c.input(0), &weights = c.input(1);
  check_ranks("conv2d_transpose", images, weights, "[C,out,kh,kw]");
  const RowsCols strides = checked_strides(c, "conv2d_transpose");
  const Padding padding = padding_from_name(c.attr<std::string>("padding"));
  const RowsCols asked =
      rows_cols(c.attr<std::vector<std::int64_t>>("output_size"), "conv2d_transpose: output_size");
  if (const auto groups = c.attr<std::int64_t>("groups"); groups != 1)
    throw InvalidArgumentError("conv2d_transpose: groups is {}; only 1 is possible", groups);
  const auto dim = [](const Shape& shape, int axis) { return shape.has_rank() ? shape.dim(axis) : -1; };
  if (dim(images, 1) >= 0 && dim(weights, 0) >= 0 && dim(images, 1) != dim(weights, 0))
    throw InvalidArgumentError(
        "conv2d_transpose: images are {} and weights are {}; the channels of the images ({}) must equal the "
        "first "
        "dimension of the weights ({})",
        images, weights, images.dim(1), weights.dim(0));
  c.set_output(0, {dim(images, 0), dim(weights, 1),
                   transposed_size(dim(images, 2), dim(weights, 2), strides[0], padding, asked[0]),
                   transposed_size(dim(images, 3), dim(weights, 3), strides[1], padding, asked[1])});
}

// The roles change: dy are the images of a convolution whose results are like the op's images.
Outputs conv2d_transpose_gradient(Scope& s, const Node& op, Output dy) {
  return {s.add("Conv2D", {dy, op.input(1)}, window_attrs(op)),
          s.add("Conv2DBackpropFilter", {dy, op.input(1), op.input(0)}, window_attrs(op))};
}

const RegisterOp conv2d_op(with_window("Conv2D")
                               .output("y")
                               .shape([](ShapeContext& c) { c.set_output(0, conv2d_results(c)); })
                               .gradient(conv2d_gradient));
const RegisterOp conv2d_input_op(conv2d_grad_schema("Conv2DBackpropInput", 0));
const RegisterOp conv2d_filter_op(conv2d_grad_schema("Conv2DBackpropFilter", 1));
const RegisterOp conv2d_transpose_op(with_window("Conv2DTranspose")
                                         .attr("output_size", std::vector<std::int64_t>{0, 0})
                                         .output("y")
                                         .shape(conv2d_transpose_shape)
                                         .gradient(conv2d_transpose_gradient));

std::vector<std::int64_t> list(const RowsCols& numbers) { return {numbers[0], numbers[1]}; }

}  // namespace

Output conv2d(const Scope& s, Output images, Output weights, Conv2dOptions options) {
  return s.add(
      "Conv2D", {images, weights},
      {{"strides", list(options.strides)}, {"padding", name(options.padding)}, {"groups", options.groups}});
}

Output depthwise_conv2d(const Scope& s, Output images, Output weights, Conv2dOptions options) {
  const Shape& shape = weights.shape();
  if (!shape.has_rank() || shape.rank() != 4 || shape.dim(0) < 0 || shape.dim(1) < 0)
    throw InvalidArgumentError("depthwise_conv2d: weights are {}; they must be [C,M,kh,kw], C and M known",
                               shape);
  const Scope scope = s.name_scope("depthwise_conv2d");
  options.groups = shape.dim(0);
  const Shape filters{shape.dim(0) * shape.dim(1), 1, shape.dim(2), shape.dim(3)};
  return conv2d(scope, images, reshape(scope, weights, filters), options);
}

Output conv2d_transpose(const Scope& s, Output images, Output weights, Conv2dTransposeOptions options) {
  return s.add("Conv2DTranspose", {images, weights},
               {{"strides", list(options.strides)},
                {"padding", name(options.padding)},
                {"output_size", list(options.output_size)}});
}

}  // namespace kolo
