#include <kolo/core/ops/all_finite.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

const RegisterOp all_finite_op(OpSchema("AllFinite")
                                   .variadic("xs", {DType::f32, DType::f64, DType::f16, DType::bf16},
                                             /*mixed=*/true)
                                   .output("finite", DType::boolean)
                                   .shape([](ShapeContext& c) { c.set_output(0, Shape()); })
                                   .no_gradient());

}  // namespace

Output all_finite(const Scope& s, const Outputs& xs) {
  if (xs.empty()) throw InvalidArgumentError("all_finite takes at least one tensor; none was given");
  return s.add("AllFinite", xs);
}

}  // namespace kolo
