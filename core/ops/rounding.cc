#include <kolo/core/ops/rounding.h>

#include <kolo/core/ops/broadcast_gradient.h>
#include <kolo/core/ops/elementwise.h>

namespace kolo {
namespace {

const std::vector<DType> kArithmetic = {DType::f32, DType::f64, DType::i32, DType::i64};

OpSchema rounding(const char* name) {
  return OpSchema(name).input("x", {DType::f32, DType::f64}).output("y").in_place(0).no_gradient();
}

OpSchema division(const char* name) {
  return OpSchema(name)
      .input("a", kArithmetic)
      .input("b", "a")
      .output("y")
      .in_place(0)
      .in_place(1)
      .shape([](ShapeContext& c) { c.set_output(0, broadcast_shapes(c.input(0), c.input(1))); });
}

const RegisterOp ops[] = {
    rounding("Floor"),
    rounding("Ceil"),
    rounding("Round"),
    division("FloorDiv").no_gradient(),
    division("FloorMod").gradient([](Scope& s, const Node& op, Output dy) {
      const Output db = neg(s, mul(s, dy, floordiv(s, op.input(0), op.input(1))));
      return Outputs{detail::summed_to_input(s, dy, op, 0), detail::summed_to_input(s, db, op, 1)};
    }),
};

}  // namespace

Output floor(const Scope& s, Output x) { return s.add("Floor", {x}); }
Output ceil(const Scope& s, Output x) { return s.add("Ceil", {x}); }
Output round(const Scope& s, Output x) { return s.add("Round", {x}); }
Output floordiv(const Scope& s, Output a, Output b) { return s.add("FloorDiv", {a, b}); }
Output mod(const Scope& s, Output a, Output b) { return s.add("FloorMod", {a, b}); }

}  // namespace kolo
