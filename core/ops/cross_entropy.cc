#include <kolo/core/ops/cross_entropy.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

void cross_entropy_shape(ShapeContext& c) {
  const Shape &logits = c.input(0), &labels = c.input(1);
  if ((logits.has_rank() && logits.rank() != 2) || (labels.has_rank() && labels.rank() != 1))
    throw InvalidArgumentError(
        "sparse_softmax_cross_entropy_with_logits: logits are {} and labels are {}; they must be "
        "[N,classes] and [N]",
        logits, labels);
  const std::int64_t rows = logits.has_rank() ? logits.dim(0) : -1,
                     count = labels.has_rank() ? labels.dim(0) : -1;
  if (rows >= 0 && count >= 0 && rows != count)
    throw InvalidArgumentError(
        "sparse_softmax_cross_entropy_with_logits: logits are {} and labels are {}; there must be one "
        "label for each row",
        logits, labels);
  const std::int64_t examples = rows >= 0 ? rows : count;
  c.set_output(0, {examples});
  c.set_output(1, {examples, logits.has_rank() ? logits.dim(1) : -1});
}

// Output 1 is the loss's gradient with respect to the logits, made while the exponentials are at hand.
const RegisterOp cross_entropy_op(
    OpSchema("SparseSoftmaxCrossEntropyWithLogits")
        .input("logits", {DType::f32, DType::f64})
        .input("labels", {DType::i32, DType::i64})
        .output("loss", "logits")
        .output("backprop", "logits")
        .shape(cross_entropy_shape)
        .gradient([](Scope& s, const Node& op, const Outputs& dy) {
          if (dy[1])
            throw UnimplementedError("{}: the gradient of its output 1, a second derivative, is not defined",
                                     describe(op));
          return Outputs{dy[0] ? Output(s.add("ScaleRows", {op.output(1), dy[0]})) : Output(), Output()};
        }));

void scale_rows_shape(ShapeContext& c) {
  const Shape& x = c.input(0);
  detail::check_input(c, 0, {-1, -1}, "rows and columns");
  detail::check_input(c, 1, {x.has_rank() ? x.dim(0) : -1}, "a factor for each row of input 0");
  c.set_output(0, x);
}

const RegisterOp scale_rows_op(OpSchema("ScaleRows")
                                   .input("x", {DType::f32, DType::f64})
                                   .input("factors", "x")
                                   .output("y")
                                   .shape(scale_rows_shape)
                                   .in_place(0));

}  // namespace

Output sparse_softmax_cross_entropy_with_logits(const Scope& s, Output logits, Output labels) {
  return s.add("SparseSoftmaxCrossEntropyWithLogits", {logits, labels});
}

Output softmax_cross_entropy(const Scope& s, Output logits, Output labels) {
  return reduce_mean(s, sparse_softmax_cross_entropy_with_logits(s, logits, labels));
}

}  // namespace kolo
