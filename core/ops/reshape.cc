#include <kolo/core/ops/reshape.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using Dims = std::vector<std::int64_t>;

[[noreturn]] void refuse(const Shape& x, const Shape& wanted, std::int64_t elements) {
  throw InvalidArgumentError(
      "Cannot reshape a tensor with {} elements to shape {} ({} elements); the tensor is {}", x.elements(),
      wanted, elements, x);
}

// `wanted` with its −1 filled in, where x is known well enough.
Shape reshaped(const Shape& x, const Shape& wanted) {
  std::int64_t known = 1;
  int unknown_axis = -1;
  for (int axis = 0; axis < wanted.rank(); ++axis) {
    if (wanted.dim(axis) >= 0) {
      if (__builtin_mul_overflow(known, wanted.dim(axis), &known))
        throw InvalidArgumentError("reshape: the shape {} has 2^63 elements or more", wanted);
    } else if (unknown_axis < 0) unknown_axis = axis;
    else
      throw InvalidArgumentError("Only one input size may be -1, not both {} and {}, in {}", unknown_axis,
                                 axis, wanted);
  }
  if (!x.is_fully_known()) return wanted;
  if (unknown_axis < 0) {
    if (known != x.elements()) refuse(x, wanted, known);
    return wanted;
  }
  if (known == 0)
    throw InvalidArgumentError(
        "reshape cannot infer the missing input size for an empty tensor unless all specified input sizes "
        "are "
        "non-zero; the tensor is {}, the shape {}",
        x, wanted);
  if (x.elements() % known != 0) refuse(x, wanted, known);
  return wanted.with_dim(unknown_axis, x.elements() / known);
}

const auto back = [](Scope& s, const Node& op, Output dy) {
  return Outputs{reshape_like(s, dy, op.input(0))};
};

const RegisterOp reshape_op(OpSchema("Reshape")
                                .input("x")
                                .required_attr("shape", Shape())
                                .output("y")
                                .view()
                                .gradient(back)
                                .shape([](ShapeContext& c) {
                                  c.set_output(0, reshaped(c.input(0), c.attr<Shape>("shape")));
                                }));

const RegisterOp reshape_like_op(OpSchema("ReshapeLike")
                                     .input("x")
                                     .input("like")
                                     .output("y")
                                     .view()
                                     .gradient([](Scope& s, const Node& op, Output dy) {
                                       return Outputs{reshape_like(s, dy, op.input(0)), Output()};
                                     })
                                     .shape([](ShapeContext& c) {
                                       const Shape &x = c.input(0), &like = c.input(1);
                                       if (x.is_fully_known() && like.is_fully_known() &&
                                           x.elements() != like.elements())
                                         refuse(x, like, like.elements());
                                       c.set_output(0, like);
                                     }));

const RegisterOp expand_dims_op(OpSchema("ExpandDims")
                                    .input("x")
                                    .required_attr("axis", 0)
                                    .output("y")
                                    .view()
                                    .gradient(back)
                                    .shape([](ShapeContext& c) {
                                      const Shape& x = c.input(0);
                                      if (!x.has_rank()) return;
                                      const int axis = c.attr<int>("axis");
                                      if (axis < -x.rank() - 1 || axis > x.rank())
                                        throw InvalidArgumentError(
                                            "expand_dims: axis {} for {} must be in [{}, {}]", axis, x,
                                            -x.rank() - 1, x.rank());
                                      Dims dims = x.dims();
                                      dims.insert(dims.begin() + (axis < 0 ? axis + x.rank() + 1 : axis), 1);
                                      c.set_output(0, Shape(std::move(dims)));
                                    }));

// All dimensions that are 1, which cannot be told while some are unknown; or those asked for.
void squeezed_shape(ShapeContext& c) {
  const Shape& x = c.input(0);
  const Dims axes = c.attr<Dims>("axes");
  if (!x.has_rank() || (axes.empty() && !x.is_fully_known())) return;
  std::vector<bool> dropped(x.rank());
  for (int axis = 0; axis < x.rank(); ++axis) dropped[axis] = axes.empty() && x.dim(axis) == 1;
  for (const std::int64_t axis : axes) {
    if (axis < -x.rank() || axis >= x.rank())
      throw InvalidArgumentError("squeeze: axis {} is outside the dimensions of {}", axis, x);
    const auto at = static_cast<int>(axis < 0 ? axis + x.rank() : axis);
    if (x.dim(at) != 1 && x.dim(at) != -1)
      throw InvalidArgumentError("Can not squeeze dim[{}], expected a dimension of 1, got {}", at, x.dim(at));
    dropped[at] = true;
  }
  Dims dims;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (!dropped[axis]) dims.push_back(x.dim(axis));
  c.set_output(0, Shape(std::move(dims)));
}

const RegisterOp squeeze_op(OpSchema("Squeeze")
                                .input("x")
                                .attr("axes", Dims())
                                .output("y")
                                .view()
                                .gradient(back)
                                .shape(squeezed_shape));

}  // namespace

Output reshape(const Scope& s, Output x, Shape shape) {
  if (!shape.has_rank()) throw InvalidArgumentError("reshape of {} needs a shape of known rank", x.name());
  return s.add("Reshape", {x}, {{"shape", std::move(shape)}});
}
Output reshape_like(const Scope& s, Output x, Output like) {
  if (like.shape().is_fully_known()) return reshape(s, x, like.shape());
  return s.add("ReshapeLike", {x, like});
}
Output expand_dims(const Scope& s, Output x, int axis) { return s.add("ExpandDims", {x}, {{"axis", axis}}); }
Output squeeze(const Scope& s, Output x, std::vector<std::int64_t> axes) {
  return s.add("Squeeze", {x}, {{"axes", std::move(axes)}});
}

}  // namespace kolo
