#include <kolo/core/ops/activations.h>

#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/inference_form.h>
#include <kolo/core/ops/dtypes.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

// All gradients are computed from x, in one pass, by the op NAMEGrad(dy, x).
OpSchema activation(const char* name) {
  return OpSchema(name)
      .input("x", detail::kReal)
      .attr("alpha", 1.0)
      .output("y")
      .in_place(0)
      .gradient([](Scope& s, const Node& op, Output dy) {
        return Outputs{s.add(op.op() + "Grad", {dy, op.input(0)}, {{"alpha", op.attr("alpha")}})};
      });
}
OpSchema activation_grad(const char* name) {
  return OpSchema(name)
      .input("dy", detail::kReal)
      .input("x", "dy")
      .attr("alpha", 1.0)
      .output("dx")
      .shape(detail::alike)
      .in_place(0)
      .in_place(1);
}

const RegisterOp activation_ops[] = {
    activation("Gelu"),      activation_grad("GeluGrad"),      // with the normal distribution
    activation("GeluTanh"),  activation_grad("GeluTanhGrad"),  // the approximation
    activation("Swish"),     activation_grad("SwishGrad"),
    activation("Elu"),       activation_grad("EluGrad"),
    activation("Selu"),      activation_grad("SeluGrad"),
    activation("LeakyRelu"), activation_grad("LeakyReluGrad"),
    activation("Softplus"),  activation_grad("SoftplusGrad"),
    activation("Relu6"),     activation_grad("Relu6Grad"),
};

}  // namespace

Output gelu(const Scope& s, Output x, bool approximate) {
  return s.add(approximate ? "GeluTanh" : "Gelu", {x});
}
Output swish(const Scope& s, Output x) { return s.add("Swish", {x}); }
Output elu(const Scope& s, Output x, double alpha) { return s.add("Elu", {x}, {{"alpha", alpha}}); }
Output selu(const Scope& s, Output x) { return s.add("Selu", {x}); }
Output leaky_relu(const Scope& s, Output x, double alpha) {
  return s.add("LeakyRelu", {x}, {{"alpha", alpha}});
}
Output softplus(const Scope& s, Output x) { return s.add("Softplus", {x}); }
Output relu6(const Scope& s, Output x) { return s.add("Relu6", {x}); }

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

const RegisterOp softmax_ops[] = {
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

namespace {

void check_rate(double rate) {
  if (!(rate >= 0 && rate < 1))
    throw InvalidArgumentError("rate must be a scalar tensor or a float in the range [0, 1), got {}", rate);
}

// Output 1 tells which elements were kept: a byte each, which the gradient reads instead of x.
const RegisterOp dropout_op(
    OpSchema("Dropout")
        .input("x", {DType::f32, DType::f64})
        .required_attr("rate", 0.0)
        .attr("seed", 0)
        .output("y")
        .output("kept", DType::u8)
        .in_place(0)
        .shape([](ShapeContext& c) {
          check_rate(c.attr<double>("rate"));
          c.set_output(0, c.input(0));
          c.set_output(1, c.input(0));
        })
        .gradient([](Scope& s, const Node& op, const Outputs& dy) {
          return Outputs{s.add("DropoutGrad", {dy[0], op.output(1)}, {{"rate", op.attr("rate")}})};
        })
        .stateful());

const RegisterOp dropout_grad_op(OpSchema("DropoutGrad")
                                     .input("dy", {DType::f32, DType::f64})
                                     .input("kept", {DType::u8})
                                     .required_attr("rate", 0.0)
                                     .output("dx")
                                     .shape([](ShapeContext& c) {
                                       check_rate(c.attr<double>("rate"));
                                       detail::alike(c);
                                     })
                                     .in_place(0));

const RegisterInferenceForm dropout_form("Dropout", [](const Scope&, const Node&, const Outputs& in) {
  return Outputs{in[0], Output()};
});

}  // namespace

Output dropout(const Scope& s, Output x, double rate, std::int64_t seed) {
  check_rate(rate);
  if (rate == 0) return x;
  return s.add("Dropout", {x}, {{"rate", rate}, {"seed", seed}});
}

}  // namespace kolo
