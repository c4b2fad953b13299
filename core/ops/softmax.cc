#include <kolo/core/ops/softmax.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

const RegisterOp softmax_op(OpSchema("Softmax")
                                .input("logits", {DType::f32, DType::f64})
                                .output("y")
                                .in_place(0)
                                .shape([](ShapeContext& c) {
                                  if (c.input(0).has_rank() && c.input(0).rank() == 0)
                                    throw InvalidArgumentError(
                                        "softmax: logits are a scalar; they must have at least 1 dimension");
                                  c.set_output(0, c.input(0));
                                })
                                .gradient([](Scope& s, const Node& op, Output dy) {
                                  return Outputs{s.add("SoftmaxGrad", {op.output(0), dy})};
                                }));

const RegisterOp softmax_grad_op(
    OpSchema("SoftmaxGrad").input("y", {DType::f32, DType::f64}).input("dy", "y").output("dx").in_place(1));

}  // namespace

Output softmax(const Scope& s, Output logits) { return s.add("Softmax", {logits}); }

}  // namespace kolo
