#include <kolo/core/ops/concat.h>

#include <utility>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using Dims = std::vector<std::int64_t>;

void concat_shape(ShapeContext& c) {
  if (c.num_inputs() == 0) throw InvalidArgumentError("concat takes at least one tensor; none was given");
  const int wished = c.attr<int>("axis");
  Shape joined = Shape::unknown_rank();
  std::int64_t along = 0;  // −1 as soon as one is unknown
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Shape& x = c.input(i);
    if (!x.has_rank()) {
      along = -1;
      continue;
    }
    const int axis = wished < 0 ? wished + x.rank() : wished;
    if (axis < 0 || axis >= x.rank())
      throw InvalidArgumentError("concat: axis {} is outside the dimensions of input {}, {}", wished, i, x);
    along = along < 0 || x.dim(axis) < 0 ? -1 : along + x.dim(axis);
    const Shape rest = x.with_dim(axis, -1);
    if (!joined.is_compatible_with(rest))
      throw InvalidArgumentError(
          "concat along axis {}: input {} is {}, which does not fit the inputs before it, {}", wished, i, x,
          joined);
    joined = joined.merged_with(rest);
  }
  if (joined.has_rank()) joined = joined.with_dim(wished < 0 ? wished + joined.rank() : wished, along);
  c.set_output(0, joined);
}

const RegisterOp concat_op(
    OpSchema("Concat")
        .required_attr("axis", 0)
        .variadic("xs")
        .output("y")
        .shape(concat_shape)
        .gradient([](Scope& s, const Node& op, Output dy) {
          Outputs inputs = {dy};
          inputs.insert(inputs.end(), op.inputs().begin(), op.inputs().end());
          const Operation parts = s.add("ConcatGrad", inputs, {{"axis", op.attr("axis")}});
          Outputs dx;
          for (int i = 0; i < op.num_inputs(); ++i) dx.push_back(parts.output(i));
          return dx;
        }));

// The blocks of dy that belong to each of the xs; sizes may be unknown until the graph is run.
const RegisterOp concat_grad_op(
    OpSchema("ConcatGrad").required_attr("axis", 0).input("dy").variadic("xs").output_per_input());

void slice_shape(ShapeContext& c) {
  const Dims begin = c.attr<Dims>("begin"), size = c.attr<Dims>("size");
  const Shape& x = c.input(0);
  if (begin.size() != size.size() || (x.has_rank() && x.rank() != static_cast<int>(begin.size())))
    throw InvalidArgumentError(
        "slice: x is {}, but {} begins and {} sizes were given; one for each dimension is right", x,
        begin.size(), size.size());
  Dims dims;
  for (std::size_t axis = 0; axis < begin.size(); ++axis) {
    const std::int64_t dim = x.has_rank() ? x.dims()[axis] : -1;
    if (begin[axis] < 0 || size[axis] < -1 ||
        (dim >= 0 && begin[axis] + std::max<std::int64_t>(size[axis], 0) > dim))
      throw InvalidArgumentError("slice: dimension {} of {} has {} elements; {} from {} do not lie within",
                                 axis, x, dim, size[axis], begin[axis]);
    dims.push_back(size[axis] >= 0 ? size[axis] : dim < 0 ? -1 : dim - begin[axis]);
  }
  c.set_output(0, Shape(std::move(dims)));
}

const RegisterOp slice_op(OpSchema("Slice")
                              .input("x")
                              .required_attr("begin", Dims())
                              .required_attr("size", Dims())
                              .output("y")
                              .shape(slice_shape)
                              .gradient([](Scope& s, const Node& op, Output dy) -> Outputs {
                                return {s.add("SliceGrad", {dy, op.input(0)}, {{"begin", op.attr("begin")}})};
                              }));

// dy at its place in zeros of x's shape.
const RegisterOp slice_grad_op(OpSchema("SliceGrad")
                                   .input("dy")
                                   .input("x", "dy")
                                   .required_attr("begin", Dims())
                                   .output("dx")
                                   .shape([](ShapeContext& c) { c.set_output(0, c.input(1)); }));

}  // namespace

Output concat(const Scope& s, const Outputs& xs, int axis) { return s.add("Concat", xs, {{"axis", axis}}); }
Output slice(const Scope& s, Output x, std::vector<std::int64_t> begin, std::vector<std::int64_t> size) {
  return s.add("Slice", {x}, {{"begin", std::move(begin)}, {"size", std::move(size)}});
}

}  // namespace kolo
