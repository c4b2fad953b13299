#include <kolo/core/ops/dropout.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/inference_form.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
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

const RegisterInferenceForm inference("Dropout", [](const Scope&, const Node&, const Outputs& in) {
  return Outputs{in[0], Output()};
});

}  // namespace

Output dropout(const Scope& s, Output x, double rate, std::int64_t seed) {
  check_rate(rate);
  if (rate == 0) return x;
  return s.add("Dropout", {x}, {{"rate", rate}, {"seed", seed}});
}

}  // namespace kolo
