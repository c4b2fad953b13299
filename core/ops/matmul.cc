#include <kolo/core/ops/matmul.h>

#include <array>
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

}  // namespace kolo
