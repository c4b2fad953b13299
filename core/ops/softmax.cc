#include <kolo/core/ops/softmax.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

void softmax_shape(ShapeContext& c) {
  const Shape& logits = c.input(0);
  const auto axis = c.attr<std::int64_t>("axis");
  if (logits.has_rank() && logits.rank() == 0)
    throw InvalidArgumentError("softmax: logits are a scalar; they must have at least 1 dimension");
  if (logits.has_rank() && (axis < -logits.rank() || axis >= logits.rank()))
    throw InvalidArgumentError("softmax: logits are {} and axis is {}; it must be in [{}, {})", logits, axis,
                               -logits.rank(), logits.rank());
  c.set_output(0, logits);
}

void softmax_grad_shape(ShapeContext& c) {
  softmax_shape(c);
  detail::alike(c);
}

OpSchema with_axis(const char* name, const char* input) {
  OpSchema schema(name);
  schema.input(input, {DType::f32, DType::f64}).attr("axis", -1).output("y");
  return schema;
}

OpSchema forward(const char* name) {
  return with_axis(name, "logits")
      .in_place(0)
      .shape(softmax_shape)
      .gradient([](Scope& s, const Node& op, Output dy) {
        return Outputs{s.add(op.op() + "Grad", {op.output(0), dy}, {{"axis", op.attr("axis")}})};
      });
}

const RegisterOp ops[] = {
    forward("Softmax"),
    with_axis("SoftmaxGrad", "y").input("dy", "y").shape(softmax_grad_shape).in_place(1),
    forward("LogSoftmax"),
    with_axis("LogSoftmaxGrad", "y").input("dy", "y").shape(softmax_grad_shape).in_place(1),
};

}  // namespace

Output softmax(const Scope& s, Output logits, int axis) {
  return s.add("Softmax", {logits}, {{"axis", axis}});
}
Output log_softmax(const Scope& s, Output logits, int axis) {
  return s.add("LogSoftmax", {logits}, {{"axis", axis}});
}

}  // namespace kolo
