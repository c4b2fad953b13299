#include <kolo/core/ops/top_k.h>

#include <limits>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

void top_k_shape(ShapeContext& c) {
  const Shape& x = c.input(0);
  const auto k = c.attr<std::int64_t>("k");
  if (k < 0) throw InvalidArgumentError("Need k >= 0, got {}", k);
  if (!x.has_rank()) return;
  if (x.rank() == 0) throw InvalidArgumentError("top_k: input must be >= 1-D, got shape {}", x);
  const std::int64_t columns = x.dim(-1);
  if (columns >= 0 && columns < k)
    throw InvalidArgumentError("input must have at least k columns. Had {}, needed {}", columns, k);
  if (columns > std::numeric_limits<std::int32_t>::max())
    throw InvalidArgumentError("top_k: x is {}; its last dimension must fit in i32", x);
  c.set_output(0, x.with_dim(-1, k));
  c.set_output(1, x.with_dim(-1, k));
}

const RegisterOp top_k_op(OpSchema("TopK")
                              .input("x", {DType::f32, DType::f64, DType::i32, DType::i64})
                              .attr("k", 1)
                              .output("values")
                              .output("indices", DType::i32)
                              .shape(top_k_shape)
                              .gradient([](Scope& s, const Node& op, Output dy) -> Outputs {
                                return {s.add("TopKGrad", {dy, op.output(1), op.input(0)})};
                              }));

void top_k_grad_shape(ShapeContext& c) {
  const Shape& x = c.input(2);
  if (x.has_rank() && x.rank() == 0)
    throw InvalidArgumentError("top_k: input must be >= 1-D, got shape {}", x);
  const Shape rows = x.has_rank() ? x.with_dim(-1, -1) : x;
  detail::check_input(c, 1, rows, "some columns of x");
  detail::check_input(c, 0, c.input(1).merged_with(rows), "as the indices");
  c.set_output(0, x);
}

// dy at the places that `indices` name, in zeros of x's shape.
const RegisterOp top_k_grad_op(OpSchema("TopKGrad")
                                   .input("dy", {DType::f32, DType::f64})
                                   .input("indices", {DType::i32})
                                   .input("x", "dy")
                                   .output("dx")
                                   .shape(top_k_grad_shape));

const RegisterOp in_top_k_op(
    OpSchema("InTopK")
        .input("predictions", {DType::f32, DType::f64})
        .input("targets", {DType::i32, DType::i64})
        .required_attr("k", 0)
        .output("precision", DType::boolean)
        .no_gradient()
        .shape([](ShapeContext& c) {
          const Shape &predictions = c.input(0), &targets = c.input(1);
          if (predictions.has_rank() && predictions.rank() != 2)
            throw InvalidArgumentError("in_top_k: predictions must be 2-dimensional; they are {}",
                                       predictions);
          if (targets.has_rank() && targets.rank() != 1)
            throw InvalidArgumentError("in_top_k: targets must be 1-dimensional; they are {}", targets);
          const std::int64_t rows = predictions.has_rank() ? predictions.dim(0) : -1,
                             count = targets.has_rank() ? targets.dim(0) : -1;
          if (rows >= 0 && count >= 0 && rows != count)
            throw InvalidArgumentError(
                "First dimension of predictions {} must match length of targets {}: they are {} and {}", rows,
                count, predictions, targets);
          c.set_output(0, {rows >= 0 ? rows : count});
        }));

}  // namespace

TopK top_k(const Scope& s, Output x, std::int64_t k) {
  const Operation op = s.add("TopK", {x}, {{"k", k}});
  return {op.output(0), op.output(1)};
}
Output in_top_k(const Scope& s, Output predictions, Output targets, std::int64_t k) {
  return s.add("InTopK", {predictions, targets}, {{"k", k}});
}

}  // namespace kolo
