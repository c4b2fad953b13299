#include <kolo/core/ops/cumsum.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

// What adds to an element of y from one end, gets its gradient from the other.
const RegisterOp cumsum_op(OpSchema("Cumsum")
                               .input("x", {DType::f32, DType::f64, DType::i32, DType::i64})
                               .attr("axis", 0)
                               .attr("exclusive", false)
                               .attr("reverse", false)
                               .output("y")
                               .in_place(0)
                               .shape([](ShapeContext& c) {
                                 const Shape& x = c.input(0);
                                 const int axis = c.attr<int>("axis");
                                 if (x.has_rank() && (axis < -x.rank() || axis >= x.rank()))
                                   throw InvalidArgumentError(
                                       "cumsum: axis {} is outside the dimensions of {}", axis, x);
                                 c.set_output(0, x);
                               })
                               .gradient([](Scope& s, const Node& op, Output dy) {
                                 return Outputs{cumsum(s, dy, op.attr<int>("axis"),
                                                       {.exclusive = op.attr<bool>("exclusive"),
                                                        .reverse = !op.attr<bool>("reverse")})};
                               }));

}  // namespace

Output cumsum(const Scope& s, Output x, int axis, CumsumOptions options) {
  return s.add("Cumsum", {x},
               {{"axis", axis}, {"exclusive", options.exclusive}, {"reverse", options.reverse}});
}

}  // namespace kolo
