#include <kolo/core/ops/linalg.h>

#include <array>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

// Of the product of the last two dimensions of a and b.
std::array<std::int64_t, 2> rows_and_cols(const ShapeContext& c, const char* name) {
  const Shape &a = c.input(0), &b = c.input(1);
  const bool transpose_a = c.attr<bool>("transpose_a"), transpose_b = c.attr<bool>("transpose_b");
  const auto dim = [](const Shape& shape, int axis) { return shape.has_rank() ? shape.dim(axis) : -1; };
  const std::int64_t rows = dim(a, transpose_a ? -1 : -2), cols = dim(b, transpose_b ? -2 : -1);
  const std::int64_t inner_a = dim(a, transpose_a ? -2 : -1), inner_b = dim(b, transpose_b ? -1 : -2);
  if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b)
    throw InvalidArgumentError(
        "{}: a is {} and b is {}; the columns of {} ({}) must equal the rows of {} ({})", name, a, b,
        transpose_a ? "a transposed" : "a", inner_a, transpose_b ? "b transposed" : "b", inner_b);
  return {rows, cols};
}

void matmul_shape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  if ((a.has_rank() && a.rank() != 2) || (b.has_rank() && b.rank() != 2))
    throw InvalidArgumentError("matmul: a is {} and b is {}; both must have 2 dimensions", a, b);
  const auto [rows, cols] = rows_and_cols(c, "matmul");
  c.set_output(0, {rows, cols});
}

// All but the last two dimensions.
Shape batch_of(const Shape& x) {
  if (!x.has_rank()) return x;
  return Shape(std::vector<std::int64_t>(x.dims().begin(), x.dims().end() - 2));
}

void batch_matmul_shape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  if ((a.has_rank() && a.rank() < 3) || (b.has_rank() && b.rank() < 3))
    throw InvalidArgumentError("batch_matmul: a is {} and b is {}; both must have at least 3 dimensions", a,
                               b);
  if (!batch_of(a).is_compatible_with(batch_of(b)))
    throw InvalidArgumentError(
        "batch_matmul: a is {} and b is {}; all dimensions but the last two must be the same", a, b);
  const auto [rows, cols] = rows_and_cols(c, "batch_matmul");
  const Shape batch = batch_of(a).merged_with(batch_of(b));
  if (!batch.has_rank()) return c.set_output(0, batch);
  std::vector<std::int64_t> dims = batch.dims();
  dims.insert(dims.end(), {rows, cols});
  c.set_output(0, Shape(dims));
}

// The gradient of C = op(A) · op(B), for each of the four pairs of transposes, as products that need no
// transposed copy.
Outputs matmul_gradient(Scope& s, const Node& op, Output dy) {
  const Output a = op.input(0), b = op.input(1);
  const bool ta = op.attr<bool>("transpose_a"), tb = op.attr<bool>("transpose_b");
  const auto product = op.op() == "MatMul" ? matmul : batch_matmul;
  const Output da = ta ? product(s, b, dy, {.transpose_a = tb, .transpose_b = true})
                       : product(s, dy, b, {.transpose_b = !tb});
  const Output db = tb ? product(s, dy, a, {.transpose_a = true, .transpose_b = ta})
                       : product(s, a, dy, {.transpose_a = !ta});
  return {da, db};
}

OpSchema product_op(const char* name) {
  return OpSchema(name)
      .input("a", {DType::f32, DType::f64})
      .input("b", "a")
      .attr("transpose_a", false)
      .attr("transpose_b", false)
      .output("product")
      .gradient(matmul_gradient);
}

const RegisterOp matmul_op(product_op("MatMul").shape(matmul_shape));
const RegisterOp batch_matmul_op(product_op("BatchMatMul").shape(batch_matmul_shape));

AttrMap attrs_of(const MatmulOptions& options) {
  return {{"transpose_a", options.transpose_a}, {"transpose_b", options.transpose_b}};
}

}  // namespace

Output matmul(const Scope& s, Output a, Output b, MatmulOptions options) {
  return s.add("MatMul", {a, b}, attrs_of(options));
}
Output batch_matmul(const Scope& s, Output a, Output b, MatmulOptions options) {
  return s.add("BatchMatMul", {a, b}, attrs_of(options));
}

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

namespace {

const RegisterOp orthogonalize_op(
    OpSchema("Orthogonalize")
        .input("x", {DType::f32, DType::f64})
        .output("q")
        .shape([](ShapeContext& c) {
          const Shape& x = c.input(0);
          c.set_output(0, x);
          if (!x.has_rank()) return;
          const bool is_tall = x.rank() == 2 && (x.dim(0) < 0 || x.dim(0) >= x.dim(1));
          if (!is_tall)
            throw InvalidArgumentError(
                "orthogonalize: x is {}; it must be a matrix with at least as many "
                "rows as columns",
                x);
        })
        .no_gradient());

}  // namespace

Output orthogonalize(const Scope& s, Output x) { return s.add("Orthogonalize", {x}); }

}  // namespace kolo
