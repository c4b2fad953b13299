#include <kolo/core/ops/strided_slice.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/shape_checks.h>
#include <kolo/core/ops/slice_spec.h>

namespace kolo {
namespace {

using Dims = std::vector<std::int64_t>;

OpSchema with_slice(OpSchema schema) {
  return std::move(schema.required_attr("begin", Dims())
                       .required_attr("end", Dims())
                       .required_attr("strides", Dims())
                       .attr("begin_mask", 0)
                       .attr("end_mask", 0)
                       .attr("ellipsis_mask", 0)
                       .attr("new_axis_mask", 0)
                       .attr("shrink_axis_mask", 0));
}

Shape sliced(const ShapeContext& c, const Shape& x) {
  const detail::SliceSpec spec = detail::slice_spec(c);
  if (spec.begin.size() != spec.end.size() || spec.begin.size() != spec.strides.size() ||
      spec.begin.size() > 62)
    throw InvalidArgumentError(
        "strided_slice: {} begins, {} ends and {} strides were given; they must be as many, 62 at most",
        spec.begin.size(), spec.end.size(), spec.strides.size());
  return x.has_rank() ? detail::resolve_slice(spec, x).result : Shape::unknown_rank();
}

const RegisterOp strided_slice_op(
    with_slice(OpSchema("StridedSlice").input("x").output("y").shape([](ShapeContext& c) {
      c.set_output(0, sliced(c, c.input(0)));
    })).gradient([](Scope& s, const Node& op, Output dy) -> Outputs {
      return {s.add("StridedSliceGrad", {dy, op.input(0)}, op.attrs())};
    }));

// dy at its places in zeros of x's shape.
const RegisterOp strided_slice_grad_op(
    with_slice(
        OpSchema("StridedSliceGrad").input("dy").input("x", "dy").output("dx").shape([](ShapeContext& c) {
          detail::check_input(c, 0, sliced(c, c.input(1)), "the slice of x");
          c.set_output(0, c.input(1));
        }))
        .gradient([](Scope& s, const Node& op, Output ddx) -> Outputs {
          return {s.add("StridedSlice", {ddx}, op.attrs()), Output()};
        }));

const RegisterOp reverse_op(OpSchema("Reverse")
                                .input("x")
                                .required_attr("axes", Dims())
                                .output("y")
                                .shape([](ShapeContext& c) {
                                  const Shape& x = c.input(0);
                                  c.set_output(0, x);
                                  if (!x.has_rank()) return;
                                  std::vector<bool> seen(x.rank());
                                  for (const std::int64_t axis : c.attr<Dims>("axes")) {
                                    if (axis < -x.rank() || axis >= x.rank())
                                      throw InvalidArgumentError(
                                          "reverse: axis {} is outside the dimensions of {}", axis, x);
                                    const auto at =
                                        static_cast<std::size_t>(axis < 0 ? axis + x.rank() : axis);
                                    if (seen[at])
                                      throw InvalidArgumentError("reverse: axis {} of {} is given twice", at,
                                                                 x);
                                    seen[at] = true;
                                  }
                                })
                                .gradient([](Scope& s, const Node& op, Output dy) {
                                  return Outputs{reverse(s, dy, op.attr<Dims>("axes"))};
                                }));

}  // namespace

Output strided_slice(const Scope& s, Output x, Dims begin, Dims end, Dims strides, StridedSliceMasks masks) {
  if (strides.empty()) strides.assign(begin.size(), 1);
  return s.add("StridedSlice", {x},
               {{"begin", std::move(begin)},
                {"end", std::move(end)},
                {"strides", std::move(strides)},
                {"begin_mask", masks.begin},
                {"end_mask", masks.end},
                {"ellipsis_mask", masks.ellipsis},
                {"new_axis_mask", masks.new_axis},
                {"shrink_axis_mask", masks.shrink_axis}});
}

Output reverse(const Scope& s, Output x, Dims axes) {
  return s.add("Reverse", {x}, {{"axes", std::move(axes)}});
}

}  // namespace kolo
