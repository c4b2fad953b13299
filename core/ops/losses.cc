#include <kolo/core/ops/losses.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/elementwise.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/softmax.h>

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

}  // namespace kolo
