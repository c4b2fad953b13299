#include <kolo/core/ops/global_norm.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/elementwise.h>

namespace kolo {
namespace {

const RegisterOp global_norm_op(OpSchema("GlobalNorm")
                                    .variadic("xs", {DType::f32, DType::f64})
                                    .output("norm")
                                    .shape([](ShapeContext& c) { c.set_output(0, Shape()); })
                                    .gradient([](Scope& s, const Node& op, Output dy) {
                                      const Output factor = div(s, dy, op.output());
                                      Outputs dx;
                                      for (const Output& x : op.inputs()) dx.push_back(mul(s, x, factor));
                                      return dx;
                                    }));

}  // namespace

Output global_norm(const Scope& s, const Outputs& xs) {
  if (xs.empty()) throw InvalidArgumentError("global_norm takes at least one tensor; none was given");
  return s.add("GlobalNorm", xs);
}

}  // namespace kolo
