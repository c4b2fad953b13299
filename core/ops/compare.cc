#include <kolo/core/ops/compare.h>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/broadcast_gradient.h>

namespace kolo {
namespace {

const std::vector<DType> kComparable = {DType::f32,     DType::f64, DType::i32, DType::i64,
                                        DType::boolean, DType::u8,  DType::i8};
const std::vector<DType> kLogical = {DType::boolean};

OpSchema comparison(const char* name, const std::vector<DType>& types = kComparable) {
  return OpSchema(name)
      .input("a", types)
      .input("b", "a")
      .output("y", DType::boolean)
      .no_gradient()
      .shape([](ShapeContext& c) { c.set_output(0, broadcast_shapes(c.input(0), c.input(1))); });
}

OpSchema predicate(const char* name) {
  return OpSchema(name).input("x", {DType::f32, DType::f64}).output("y", DType::boolean).no_gradient();
}

const RegisterOp comparisons[] = {
    comparison("Equal"),
    comparison("NotEqual"),
    comparison("Less"),
    comparison("LessEqual"),
    comparison("Greater"),
    comparison("GreaterEqual"),
    comparison("LogicalAnd", kLogical).in_place(0).in_place(1),
    comparison("LogicalOr", kLogical).in_place(0).in_place(1),
    OpSchema("LogicalNot").input("x", kLogical).output("y").in_place(0).no_gradient(),
    predicate("IsNan"),
    predicate("IsInf"),
    predicate("IsFinite"),
};

const RegisterOp select_op(
    OpSchema("Select")
        .input("condition", {DType::boolean})
        .input("a", {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean, DType::u8, DType::i8,
                     DType::f16, DType::bf16})
        .input("b", "a")
        .output("y", "a")
        .in_place(1)
        .in_place(2)
        .shape([](ShapeContext& c) {
          c.set_output(0, broadcast_shapes(c.input(0), broadcast_shapes(c.input(1), c.input(2))));
        })
        .gradient([](Scope& s, const Node& op, Output dy) {
          const Output zero = zeros_like(s, dy), condition = op.input(0);
          return Outputs{Output(), detail::summed_to_input(s, select(s, condition, dy, zero), op, 1),
                         detail::summed_to_input(s, select(s, condition, zero, dy), op, 2)};
        }));

}  // namespace

Output equal(const Scope& s, Output a, Output b) { return s.add("Equal", {a, b}); }
Output not_equal(const Scope& s, Output a, Output b) { return s.add("NotEqual", {a, b}); }
Output less(const Scope& s, Output a, Output b) { return s.add("Less", {a, b}); }
Output less_equal(const Scope& s, Output a, Output b) { return s.add("LessEqual", {a, b}); }
Output greater(const Scope& s, Output a, Output b) { return s.add("Greater", {a, b}); }
Output greater_equal(const Scope& s, Output a, Output b) { return s.add("GreaterEqual", {a, b}); }
Output logical_and(const Scope& s, Output a, Output b) { return s.add("LogicalAnd", {a, b}); }
Output logical_or(const Scope& s, Output a, Output b) { return s.add("LogicalOr", {a, b}); }
Output logical_not(const Scope& s, Output x) { return s.add("LogicalNot", {x}); }
Output is_nan(const Scope& s, Output x) { return s.add("IsNan", {x}); }
Output is_inf(const Scope& s, Output x) { return s.add("IsInf", {x}); }
Output is_finite(const Scope& s, Output x) { return s.add("IsFinite", {x}); }
Output select(const Scope& s, Output condition, Output a, Output b) {
  return s.add("Select", {condition, a, b});
}
Output where(const Scope& s, Output condition, Output a, Output b) { return select(s, condition, a, b); }

}  // namespace kolo
