#include <kolo/core/ops/shapes.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/shape_checks.h>

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

namespace {

using Dims = std::vector<std::int64_t>;

// Of the inputs from `first` on.
Shape joined_shape(const ShapeContext& c, int first) {
  if (c.num_inputs() <= first) throw InvalidArgumentError("concat takes at least one tensor; none was given");
  const int wished = c.attr<int>("axis");
  Shape joined = Shape::unknown_rank();
  std::int64_t along = 0;  // −1 as soon as one is unknown
  for (int i = first; i < c.num_inputs(); ++i) {
    const Shape& x = c.input(i);
    if (!x.has_rank()) {
      along = -1;
      continue;
    }
    const int axis = wished < 0 ? wished + x.rank() : wished;
    if (axis < 0 || axis >= x.rank())
      throw InvalidArgumentError("concat: axis {} is outside the dimensions of input {}, {}", wished, i, x);
    along = along < 0 || x.dim(axis) < 0 ? -1 : detail::checked_add(along, x.dim(axis));
    const Shape rest = x.with_dim(axis, -1);
    if (!joined.is_compatible_with(rest))
      throw InvalidArgumentError(
          "concat along axis {}: input {} is {}, which does not fit the inputs before it, {}", wished, i, x,
          joined);
    joined = joined.merged_with(rest);
  }
  if (joined.has_rank()) joined = joined.with_dim(wished < 0 ? wished + joined.rank() : wished, along);
  return joined;
}

void concat_shape(ShapeContext& c) { c.set_output(0, joined_shape(c, 0)); }

void concat_grad_shape(ShapeContext& c) {
  detail::check_input(c, 0, joined_shape(c, 1), "as those behind it joined");
  for (int i = 1; i < c.num_inputs(); ++i) c.set_output(i - 1, c.input(i));
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
const RegisterOp concat_grad_op(OpSchema("ConcatGrad")
                                    .required_attr("axis", 0)
                                    .input("dy")
                                    .variadic("xs")
                                    .output_per_input()
                                    .shape(concat_grad_shape));

// The sizes that were asked for, equal ones if none were; −1 as long as x does not tell.
Dims part_sizes(const ShapeContext& c, std::int64_t whole) {
  const auto parts = c.attr<std::int64_t>("parts");
  Dims sizes = c.attr<Dims>("sizes");
  if (sizes.empty()) {
    if (parts < 1) throw InvalidArgumentError("split into {} parts; at least 1 is right", parts);
    if (whole >= 0 && whole % parts != 0)
      throw InvalidArgumentError("split: x is {}; {} elements cannot be divided into {} equal parts",
                                 c.input(0), whole, parts);
    return Dims(parts, whole < 0 ? -1 : whole / parts);
  }
  if (static_cast<std::int64_t>(sizes.size()) != parts)
    throw InvalidArgumentError("split_v: {} sizes were given for {} parts", sizes.size(), parts);
  std::int64_t sum = 0, open = -1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] >= 0) sum = detail::checked_add(sum, sizes[i]);
    else if (sizes[i] == -1 && open < 0) open = static_cast<std::int64_t>(i);
    else
      throw InvalidArgumentError("split_v: size {} is {}; one size may be -1, all others at least 0", i,
                                 sizes[i]);
  }
  if (whole >= 0 && (open < 0 ? sum != whole : sum > whole))
    throw InvalidArgumentError(
        "split_v: x is {}; the sizes add up to {}, not to the {} elements of the dimension", c.input(0), sum,
        whole);
  if (open >= 0 && whole >= 0) sizes[open] = whole - sum;
  return sizes;
}

void split_shape(ShapeContext& c) {
  const Shape& x = c.input(0);
  int axis = c.attr<int>("axis");
  if (x.has_rank() && (axis < -x.rank() || axis >= x.rank()))
    throw InvalidArgumentError("split: axis {} is outside the dimensions of {}", axis, x);
  const Dims sizes = part_sizes(c, x.has_rank() ? x.dim(axis) : -1);
  if (!x.has_rank()) return;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    c.set_output(static_cast<int>(i), x.with_dim(axis, sizes[i]));
}

const RegisterOp split_op(OpSchema("Split")
                              .input("x")
                              .required_attr("parts", 0)
                              .attr("sizes", Dims())
                              .attr("axis", 0)
                              .output("parts", "parts")
                              .shape(split_shape)
                              .gradient([](Scope& s, const Node& op, const Outputs& dy) {
                                Outputs parts = dy;
                                for (int i = 0; i < op.num_outputs(); ++i)
                                  if (!parts[i]) parts[i] = zeros_like(s, op.output(i));
                                return Outputs{concat(s, parts, op.attr<int>("axis"))};
                              }));

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
        (dim >= 0 && (begin[axis] > dim || size[axis] > dim - begin[axis])))
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

void slice_grad_shape(ShapeContext& c) {
  const Dims begin = c.attr<Dims>("begin");
  const Shape &dy = c.input(0), &x = c.input(1);
  const Shape of_rank(Dims(begin.size(), -1));
  bool fits = dy.is_compatible_with(of_rank) && x.is_compatible_with(of_rank);
  for (std::size_t axis = 0; fits && axis < begin.size(); ++axis) {
    const std::int64_t dim = x.has_rank() ? x.dims()[axis] : -1, size = dy.has_rank() ? dy.dims()[axis] : -1;
    fits = begin[axis] >= 0 && (dim < 0 || (begin[axis] <= dim && size <= dim - begin[axis]));
  }
  if (!fits)
    throw InvalidArgumentError("slice: the gradient {} from [{}] on does not lie within x, {}", dy,
                               fmt::join(begin, ","), x);
  c.set_output(0, x);
}

// dy at its place in zeros of x's shape.
const RegisterOp slice_grad_op(OpSchema("SliceGrad")
                                   .input("dy")
                                   .input("x", "dy")
                                   .required_attr("begin", Dims())
                                   .output("dx")
                                   .shape(slice_grad_shape));

Outputs outputs_of(const Operation& op) {
  Outputs outputs;
  for (int i = 0; i < op.node->num_outputs(); ++i) outputs.push_back(op.output(i));
  return outputs;
}

}  // namespace

Output concat(const Scope& s, const Outputs& xs, int axis) { return s.add("Concat", xs, {{"axis", axis}}); }

Outputs split(const Scope& s, Output x, int parts, int axis) {
  return outputs_of(s.add("Split", {x}, {{"parts", parts}, {"axis", axis}}));
}
Outputs split_v(const Scope& s, Output x, std::vector<std::int64_t> sizes, int axis) {
  if (sizes.empty())
    throw InvalidArgumentError("split_v of {} takes at least one size; none was given", x.name());
  const auto parts = static_cast<std::int64_t>(sizes.size());
  return outputs_of(s.add("Split", {x}, {{"parts", parts}, {"sizes", std::move(sizes)}, {"axis", axis}},
                          s.wished_name("split_v")));
}

Output stack(const Scope& s, const Outputs& xs, int axis) {
  // In a view each has the new dimension already.
  const Scope inner = s.name_scope(s.wished_name("stack"));
  Outputs expanded;
  for (const Output& x : xs) {
    if (!x.shape().is_compatible_with(xs[0].shape()))
      throw InvalidArgumentError("stack: tensor 0 is {} and tensor {} is {}; all must have one shape",
                                 xs[0].shape(), expanded.size(), x.shape());
    expanded.push_back(expand_dims(inner, x, axis));
  }
  return concat(inner, expanded, axis);
}
Outputs unstack(const Scope& s, Output x, int axis) {
  const Shape& shape = x.shape();
  if (!shape.has_rank() || axis < -shape.rank() || axis >= shape.rank() || shape.dim(axis) < 0)
    throw InvalidArgumentError("unstack: {} is {}; dimension {} must be there, and known", x.name(), shape,
                               axis);
  const auto count = static_cast<int>(shape.dim(axis));
  if (count == 0) return {};
  const Scope inner = s.name_scope(s.wished_name("unstack"));
  Outputs parts = split(inner, x, count, axis);
  for (Output& part : parts) part = squeeze(inner, part, {axis});
  return parts;
}

Output slice(const Scope& s, Output x, std::vector<std::int64_t> begin, std::vector<std::int64_t> size) {
  return s.add("Slice", {x}, {{"begin", std::move(begin)}, {"size", std::move(size)}});
}

namespace {

using Perm = std::vector<std::int64_t>;

void check_permutation(const Perm& perm) {
  std::vector<bool> seen(perm.size());
  for (const std::int64_t axis : perm) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(perm.size()) || seen[axis])
      throw InvalidArgumentError("transpose: perm [{}] is not a permutation of 0 … {}", fmt::join(perm, ","),
                                 static_cast<std::int64_t>(perm.size()) - 1);
    seen[axis] = true;
  }
}

const RegisterOp transpose_op(OpSchema("Transpose")
                                  .input("x")
                                  .required_attr("perm", Perm())
                                  .output("y")
                                  .shape([](ShapeContext& c) {
                                    const Perm perm = c.attr<Perm>("perm");
                                    check_permutation(perm);
                                    const Shape& x = c.input(0);
                                    if (!x.has_rank()) return c.set_output(0, Shape(Perm(perm.size(), -1)));
                                    if (x.rank() != static_cast<int>(perm.size()))
                                      throw InvalidArgumentError(
                                          "transpose: x is {}, of {} dimensions, but perm has {} entries", x,
                                          x.rank(), perm.size());
                                    Perm dims;
                                    for (const std::int64_t axis : perm) dims.push_back(x.dims()[axis]);
                                    c.set_output(0, Shape(std::move(dims)));
                                  })
                                  .gradient([](Scope& s, const Node& op, Output dy) {
                                    const Perm perm = op.attr<Perm>("perm");
                                    Perm inverse(perm.size());
                                    for (std::size_t i = 0; i < perm.size(); ++i)
                                      inverse[perm[i]] = static_cast<std::int64_t>(i);
                                    return Outputs{transpose(s, dy, std::move(inverse))};
                                  }));

}  // namespace

Output transpose(const Scope& s, Output x, std::vector<std::int64_t> perm) {
  if (perm.empty())
    for (int axis = x.shape().rank(); axis-- > 0;) perm.push_back(axis);
  return s.add("Transpose", {x}, {{"perm", std::move(perm)}});
}

namespace {

void check_out_type(const ShapeContext& c) {
  const DType type = c.attr<DType>("out_type");
  if (type != DType::i32 && type != DType::i64)
    throw InvalidArgumentError("the shape and the size of a tensor are i32 or i64; {} was asked for", type);
}

const RegisterOp shape_ops[] = {
    OpSchema("Shape")
        .input("x")
        .attr("out_type", DType::i32)
        .output("shape", "out_type")
        .metadata()
        .host_output(0)
        .no_gradient()
        .shape([](ShapeContext& c) {
          check_out_type(c);
          c.set_output(0, {c.input(0).has_rank() ? c.input(0).rank() : -1});
        }),
    OpSchema("Size")
        .input("x")
        .attr("out_type", DType::i32)
        .output("size", "out_type")
        .metadata()
        .host_output(0)
        .no_gradient()
        .shape([](ShapeContext& c) {
          check_out_type(c);
          c.set_output(0, Shape());
        }),
    OpSchema("Rank")
        .input("x")
        .output("rank", DType::i32)
        .metadata()
        .host_output(0)
        .no_gradient()
        .shape([](ShapeContext& c) { c.set_output(0, Shape()); }),
};

}  // namespace

Output shape_of(const Scope& s, Output x, DType out_type) {
  return s.add("Shape", {x}, {{"out_type", out_type}});
}
Output size_of(const Scope& s, Output x, DType out_type) {
  return s.add("Size", {x}, {{"out_type", out_type}});
}
Output rank_of(const Scope& s, Output x) { return s.add("Rank", {x}); }

}  // namespace kolo
