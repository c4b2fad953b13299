#include <kolo/core/ops/debugging.h>

#include <utility>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

const RegisterOp print_op(OpSchema("Print")
                              .input("x")
                              .variadic("data", {}, true)
                              .attr("message", "")
                              .attr("first_n", -1)
                              .attr("summarize", 3)
                              .output("y", "x")
                              .cpu_only()
                              .in_place(0)
                              .shape([](ShapeContext& c) { c.set_output(0, c.input(0)); })
                              .gradient([](Scope&, const Node& op, Output dy) {
                                Outputs dx(op.inputs().size());
                                dx[0] = dy;
                                return dx;
                              })
                              .stateful());

const RegisterOp assert_schema(OpSchema("Assert")
                                   .input("condition", {DType::boolean})
                                   .variadic("data", {}, true)
                                   .attr("summarize", 3)
                                   .shape([](ShapeContext& c) {
                                     if (!c.input(0).is_compatible_with(Shape()))
                                       throw InvalidArgumentError(
                                           "assert_op: the condition is {}; it must be a scalar", c.input(0));
                                   })
                                   .cpu_only()
                                   .stateful()
                                   .no_gradient());

const RegisterOp check_numerics_op(
    OpSchema("CheckNumerics")
        .input("x", {DType::f32, DType::f64})
        .required_attr("message", "")
        .output("y")
        .in_place(0)
        .gradient([](Scope& s, const Node& op, Output dy) {
          return Outputs{check_numerics(s, dy,
                                        "Not a number (NaN) or infinity (Inf) values detected in gradient. " +
                                            op.attr<std::string>("message"))};
        })
        .stateful());

Outputs with_first(Output first, const Outputs& rest) {
  Outputs all{first};
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

}  // namespace

Output print(const Scope& s, Output x, const Outputs& data, PrintOptions options) {
  return s.add("Print", with_first(x, data),
               {{"message", std::move(options.message)},
                {"first_n", options.first_n},
                {"summarize", options.summarize}});
}

Operation assert_op(const Scope& s, Output condition, const Outputs& data, std::int64_t summarize) {
  return s.add("Assert", with_first(condition, data), {{"summarize", summarize}});
}

Output check_numerics(const Scope& s, Output x, const std::string& message) {
  return s.add("CheckNumerics", {x}, {{"message", message}});
}

}  // namespace kolo
