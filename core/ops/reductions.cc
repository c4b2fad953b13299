#include <kolo/core/ops/reductions.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/dtypes.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/shape_checks.h>
#include <kolo/core/ops/shapes.h>

namespace kolo {
namespace {

using Axes = std::vector<std::int64_t>;

// Which dimensions are folded. Throws for axes that do not fit.
std::vector<bool> folded_axes(const Shape& x, const Axes& axes) {
  std::vector<bool> folded(x.rank(), axes.empty());
  for (const std::int64_t axis : axes) {
    if (axis < -x.rank() || axis >= x.rank())
      throw InvalidArgumentError("axis {} is outside the dimensions of {}; it must be in [{}, {})", axis, x,
                                 -x.rank(), x.rank());
    const auto at = static_cast<std::size_t>(axis < 0 ? axis + x.rank() : axis);
    if (folded[at]) throw InvalidArgumentError("axis {} of {} is given twice", at, x);
    folded[at] = true;
  }
  return folded;
}

Shape reduced(const ShapeContext& c, const Shape& x) {
  const Axes axes = c.attr<Axes>("axes");
  const bool keep_dims = c.attr<bool>("keep_dims");
  if (!x.has_rank()) return axes.empty() && !keep_dims ? Shape() : Shape::unknown_rank();
  const std::vector<bool> folded = folded_axes(x, axes);
  Axes dims;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (!folded[axis]) dims.push_back(x.dim(axis));
    else if (keep_dims) dims.push_back(1);
  return Shape(std::move(dims));
}
void reduced_shape(ShapeContext& c) { c.set_output(0, reduced(c, c.input(0))); }

OpSchema reduction(const char* name, const std::vector<DType>& types) {
  return OpSchema(name)
      .input("x", types)
      .attr("axes", Axes())
      .attr("keep_dims", false)
      .output("y")
      .shape(reduced_shape);
}

AttrMap attrs_of(const Node& op) { return {{"axes", op.attr("axes")}, {"keep_dims", op.attr("keep_dims")}}; }

// Each element of dy to all elements of x that were folded into it; for a mean, divided by their number.
GradientFunction spread(bool mean) {
  return [mean](Scope& s, const Node& op, const Outputs& dy) {
    AttrMap attrs = attrs_of(op);
    attrs.emplace("mean", mean);
    return Outputs{s.add("ReduceSumGrad", {dy[0], op.input(0)}, std::move(attrs))};
  };
}

Outputs product_gradient(Scope& s, const Node& op, const Outputs& dy) {
  return {s.add("ReduceProdGrad", {dy[0], op.input(0)}, attrs_of(op))};
}

Outputs extremum_gradient(Scope& s, const Node& op, const Outputs& dy) {
  return {s.add("ReduceExtremumGrad", {dy[0], op.output(), op.input(0)}, attrs_of(op))};
}

// All inputs before x, the last, are like the reduction's result.
void reduction_grad_shape(ShapeContext& c) {
  const int last = c.num_inputs() - 1;
  const Shape result = reduced(c, c.input(last));
  for (int i = 0; i < last; ++i) detail::check_input(c, i, result, "as the result of reducing x");
  c.set_output(0, c.input(last));
}

const RegisterOp reductions[] = {
    reduction("ReduceSum", detail::kArithmetic).gradient(spread(false)),
    reduction("ReduceMean", detail::kReal).gradient(spread(true)),
    reduction("ReduceMax", detail::kArithmetic).gradient(extremum_gradient),
    reduction("ReduceMin", detail::kArithmetic).gradient(extremum_gradient),
    reduction("ReduceProd", detail::kArithmetic).gradient(product_gradient),
    reduction("ReduceAny", detail::kLogical).no_gradient(),
    reduction("ReduceAll", detail::kLogical).no_gradient(),
    OpSchema("ReduceSumGrad")
        .input("dy", detail::kReal)
        .input("x", "dy")
        .attr("axes", Axes())
        .attr("keep_dims", false)
        .attr("mean", false)
        .output("dx")
        .shape(reduction_grad_shape),
    OpSchema("ReduceProdGrad")
        .input("dy", detail::kReal)
        .input("x", "dy")
        .attr("axes", Axes())
        .attr("keep_dims", false)
        .output("dx")
        .shape(reduction_grad_shape),
    OpSchema("ReduceExtremumGrad")
        .input("dy", detail::kReal)
        .input("y", "dy")
        .input("x", "dy")
        .attr("axes", Axes())
        .attr("keep_dims", false)
        .output("dx")
        .shape(reduction_grad_shape),
};

void position_shape(ShapeContext& c) {
  const Shape& x = c.input(0);
  if (!x.has_rank()) return;
  const std::vector<bool> folded = folded_axes(x, {c.attr<std::int64_t>("axis")});
  Axes dims;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (!folded[axis]) dims.push_back(x.dim(axis));
    else if (x.dim(axis) == 0)
      throw InvalidArgumentError("argmax or argmin of {} along a dimension without elements", x);
  }
  c.set_output(0, Shape(std::move(dims)));
}

OpSchema position(const char* name) {
  return OpSchema(name)
      .input("x", detail::kArithmetic)
      .attr("axis", -1)
      .output("index", DType::i64)
      .no_gradient()
      .shape(position_shape);
}

const RegisterOp positions[] = {position("ArgMax"), position("ArgMin")};

Output reduce(const Scope& s, const char* op, Output x, ReduceOptions options) {
  return s.add(op, {x}, {{"axes", std::move(options.axes)}, {"keep_dims", options.keep_dims}});
}

}  // namespace

Output reduce_sum(const Scope& s, Output x, ReduceOptions options) {
  return reduce(s, "ReduceSum", x, std::move(options));
}
Output reduce_mean(const Scope& s, Output x, ReduceOptions options) {
  return reduce(s, "ReduceMean", x, std::move(options));
}
Output reduce_max(const Scope& s, Output x, ReduceOptions options) {
  return reduce(s, "ReduceMax", x, std::move(options));
}
Output reduce_min(const Scope& s, Output x, ReduceOptions options) {
  return reduce(s, "ReduceMin", x, std::move(options));
}
Output reduce_prod(const Scope& s, Output x, ReduceOptions options) {
  return reduce(s, "ReduceProd", x, std::move(options));
}
Output reduce_any(const Scope& s, Output x, ReduceOptions options) {
  return reduce(s, "ReduceAny", x, std::move(options));
}
Output reduce_all(const Scope& s, Output x, ReduceOptions options) {
  return reduce(s, "ReduceAll", x, std::move(options));
}

Output reduce_logsumexp(const Scope& s, Output x, ReduceOptions options) {
  const Scope inner = s.name_scope(s.wished_name("reduce_logsumexp"));
  // The largest is taken out, so that no exponential overflows, unless it is infinite: the difference of two
  // infinities is no number. It is a constant of the sum: no gradient flows through it.
  const Output largest =
      stop_gradient(inner, reduce_max(inner, x, {.axes = options.axes, .keep_dims = true}));
  const Output shift = select(inner, is_finite(inner, largest), largest, zeros_like(inner, largest));
  const Output sum = reduce_sum(inner, exp(inner, sub(inner, x, shift)), options);
  return add(inner, log(inner, sum), reshape_like(inner, shift, sum));
}

Output argmax(const Scope& s, Output x, int axis) { return s.add("ArgMax", {x}, {{"axis", axis}}); }
Output argmin(const Scope& s, Output x, int axis) { return s.add("ArgMin", {x}, {{"axis", axis}}); }

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
