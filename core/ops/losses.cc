#include <kolo/core/ops/losses.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

const RegisterOp l2_loss_op(OpSchema("L2Loss")
                                .input("x", {DType::f32, DType::f64})
                                .output("loss")
                                .shape([](ShapeContext& c) { c.set_output(0, Shape()); })
                                .gradient([](Scope& s, const Node& op, Output dy) {
                                  return Outputs{mul(s, op.input(0), dy)};
                                }));

void check_same_shape(const char* a_name, Output a, const char* b_name, Output b) {
  if (!a.shape().is_compatible_with(b.shape()))
    throw InvalidArgumentError("{} and {} must have the same shape ({} vs {})", a_name, b_name, a.shape(),
                               b.shape());
}

Output number(const Scope& s, Output like, double value) { return fill(s, like.dtype(), Shape(), value); }

}  // namespace

Output l2_loss(const Scope& s, Output x) { return s.add("L2Loss", {x}); }

Output sigmoid_cross_entropy_with_logits(const Scope& s, Output logits, Output labels) {
  check_same_shape("logits", logits, "labels", labels);
  const Scope scope = s.name_scope("sigmoid_cross_entropy");
  return sub(scope, softplus(scope, logits), mul(scope, logits, labels));
}

Output softmax_cross_entropy_with_logits(const Scope& s, Output logits, Output labels) {
  check_same_shape("logits", logits, "labels", labels);
  const Scope scope = s.name_scope("softmax_cross_entropy");
  return neg(scope, reduce_sum(scope, mul(scope, labels, log_softmax(scope, logits)), {.axes = {-1}}));
}

Output mean_squared_error(const Scope& s, Output predictions, Output targets) {
  check_same_shape("predictions", predictions, "targets", targets);
  const Scope scope = s.name_scope("mean_squared_error");
  return reduce_mean(scope, square(scope, sub(scope, predictions, targets)));
}

// With q = min(e, delta): q² / 2 + delta · (e − q).
Output huber_loss(const Scope& s, Output predictions, Output targets, double delta) {
  check_same_shape("predictions", predictions, "targets", targets);
  if (!(delta > 0)) throw InvalidArgumentError("huber_loss: delta is {}; it must be above 0", delta);
  const Scope scope = s.name_scope("huber_loss");
  const Output e = abs(scope, sub(scope, predictions, targets)), limit = number(scope, e, delta);
  const Output q = minimum(scope, e, limit);
  const Output squares = mul(scope, square(scope, q), number(scope, e, 0.5));
  return reduce_mean(scope, add(scope, squares, mul(scope, sub(scope, e, q), limit)));
}

namespace {

// The op's outputs are the loss of each example and that loss's gradient with respect to the logits.
void cross_entropy_shapes(ShapeContext& c, int loss, int backprop) {
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
  c.set_output(loss, {examples});
  c.set_output(backprop, {examples, logits.has_rank() ? logits.dim(1) : -1});
}

// Output 1 is the loss's gradient with respect to the logits, made while the exponentials are at hand.
const RegisterOp cross_entropy_op(
    OpSchema("SparseSoftmaxCrossEntropyWithLogits")
        .input("logits", {DType::f32, DType::f64})
        .input("labels", {DType::i32, DType::i64})
        .output("loss", "logits")
        .output("backprop", "logits")
        .shape([](ShapeContext& c) { cross_entropy_shapes(c, 0, 1); })
        .gradient([](Scope& s, const Node& op, const Outputs& dy) {
          if (dy[1])
            throw UnimplementedError("{}: the gradient of its output 1, a second derivative, is not defined",
                                     describe(op));
          return Outputs{dy[0] ? Output(s.add("ScaleRows", {op.output(1), dy[0]})) : Output(), Output()};
        }));

const RegisterOp scaled_cross_entropy_op(OpSchema(detail::kScaledCrossEntropyOp)
                                             .input("logits", {DType::f32, DType::f64})
                                             .input("labels", {DType::i32, DType::i64})
                                             .required_attr("scale", 1.0)
                                             .output("backprop", "logits")
                                             .output("loss", "logits")
                                             .shape([](ShapeContext& c) { cross_entropy_shapes(c, 1, 0); })
                                             .in_place(0)
                                             .made_by_pass());

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
