#include <kolo/core/ops/matmul.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

void matmul_shape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  if ((a.has_rank() && a.rank() != 2) || (b.has_rank() && b.rank() != 2))
    throw InvalidArgumentError("matmul: a is {} and b is {}; both must have 2 dimensions", a, b);
  const bool transpose_a = c.attr<bool>("transpose_a"), transpose_b = c.attr<bool>("transpose_b");
  const auto dim = [](const Shape& shape, int axis) { return shape.has_rank() ? shape.dim(axis) : -1; };
  const std::int64_t rows = dim(a, transpose_a ? 1 : 0), cols = dim(b, transpose_b ? 0 : 1);
  const std::int64_t inner_a = dim(a, transpose_a ? 0 : 1), inner_b = dim(b, transpose_b ? 1 : 0);
  if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b)
    throw InvalidArgumentError(
        "matmul: a is {} and b is {}; the columns of {} ({}) must equal the rows of {} ({})", a, b,
        transpose_a ? "a transposed" : "a", inner_a, transpose_b ? "b transposed" : "b", inner_b);
  c.set_output(0, {rows, cols});
}

// The gradient of C = op(A) · op(B), for each of the four pairs of transposes, as products that need no
// transposed copy.
Outputs matmul_gradient(Scope& s, const Node& op, Output dy) {
  const Output a = op.input(0), b = op.input(1);
  const bool ta = op.attr<bool>("transpose_a"), tb = op.attr<bool>("transpose_b");
  const Output da = ta ? matmul(s, b, dy, {.transpose_a = tb, .transpose_b = true})
                       : matmul(s, dy, b, {.transpose_b = !tb});
  const Output db = tb ? matmul(s, dy, a, {.transpose_a = true, .transpose_b = ta})
                       : matmul(s, a, dy, {.transpose_a = !ta});
  return {da, db};
}

const RegisterOp matmul_op(OpSchema("MatMul")
                               .input("a", {DType::f32, DType::f64})
                               .input("b", "a")
                               .attr("transpose_a", false)
                               .attr("transpose_b", false)
                               .output("product")
                               .shape(matmul_shape)
                               .gradient(matmul_gradient));

}  // namespace

Output matmul(const Scope& s, Output a, Output b, MatmulOptions options) {
  return s.add("MatMul", {a, b},
               {{"transpose_a", options.transpose_a}, {"transpose_b", options.transpose_b}});
}

}  // namespace kolo
