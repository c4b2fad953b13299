#include <kolo/core/ops/pad.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/shape_checks.h>
#include <kolo/core/ops/strided_slice.h>

namespace kolo {
namespace {

using Dims = std::vector<std::int64_t>;

void padded_shape(ShapeContext& c) {
  const Shape& x = c.input(0);
  const Dims before = c.attr<Dims>("before"), after = c.attr<Dims>("after");
  if (before.size() != after.size())
    throw InvalidArgumentError("pad: {} paddings before and {} after were given; they must be as many",
                               before.size(), after.size());
  if (x.has_rank() && x.rank() != static_cast<int>(before.size()))
    throw InvalidArgumentError("pad: x is {}, of {} dimensions, but {} paddings were given", x, x.rank(),
                               before.size());
  Dims dims;
  for (std::size_t axis = 0; axis < before.size(); ++axis) {
    if (before[axis] < 0 || after[axis] < 0)
      throw InvalidArgumentError("pad: the padding of dimension {} is {} and {}; it must not be negative",
                                 axis, before[axis], after[axis]);
    const std::int64_t dim = x.has_rank() ? x.dims()[axis] : -1;
    dims.push_back(dim < 0 ? -1 : detail::checked_add(detail::checked_add(before[axis], dim), after[axis]));
  }
  c.set_output(0, Shape(std::move(dims)));
}

const RegisterOp pad_op(OpSchema("Pad")
                            .input("x")
                            .required_attr("before", Dims())
                            .required_attr("after", Dims())
                            .attr("value", 0.0)
                            .output("y")
                            .shape(padded_shape)
                            .gradient([](Scope& s, const Node& op, Output dy) {
                              // Cut off again: from the end, so that unknown dimensions need not be known.
                              const Dims before = op.attr<Dims>("before");
                              if (before.size() > 62)
                                throw UnimplementedError(
                                    "{}: a tensor of {} dimensions; the gradient takes at most 62",
                                    describe(op), before.size());
                              Dims end = op.attr<Dims>("after");
                              StridedSliceMasks masks;
                              for (std::size_t axis = 0; axis < end.size(); ++axis)
                                if (end[axis] == 0) masks.end |= std::int64_t{1} << axis;
                                else end[axis] = -end[axis];
                              return Outputs{strided_slice(s, dy, before, end, {}, masks)};
                            }));

}  // namespace

Output pad(const Scope& s, Output x, const std::vector<std::pair<std::int64_t, std::int64_t>>& paddings,
           double value) {
  Dims before, after;
  for (const auto& [first, last] : paddings) before.push_back(first), after.push_back(last);
  return s.add("Pad", {x}, {{"before", std::move(before)}, {"after", std::move(after)}, {"value", value}});
}

}  // namespace kolo
