#include <kolo/core/ops/slicing.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/shape_checks.h>
#include <kolo/core/ops/slicing_internal.h>

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

OpSchema with_part(OpSchema schema) {
  return std::move(schema.required_attr("index", 0).required_attr("parts", 1));
}

Shape part_of_batch(const ShapeContext& c, const Shape& x) {
  const auto index = c.attr<std::int64_t>("index"), parts = c.attr<std::int64_t>("parts");
  if (index < 0 || index >= parts)
    throw InvalidArgumentError("batch_slice: part {} of {} was asked for; parts are counted from 0", index,
                               parts);
  if (!x.has_rank()) return x;
  if (x.rank() == 0) throw InvalidArgumentError("batch_slice: x is a scalar; it must have rows");
  if (x.dim(0) < 0) return x;
  const auto [begin, end] = detail::rows_of_part(x.dim(0), index, parts);
  return x.with_dim(0, end - begin);
}

const RegisterOp batch_slice_op(
    with_part(OpSchema("BatchSlice").input("x").output("y").shape([](ShapeContext& c) {
      c.set_output(0, part_of_batch(c, c.input(0)));
    })).gradient([](Scope& s, const Node& op, Output dy) -> Outputs {
      return {s.add("BatchSliceGrad", {dy, op.input(0)}, op.attrs())};
    }));

// dy at its rows in zeros of x's shape.
const RegisterOp batch_slice_grad_op(
    with_part(OpSchema("BatchSliceGrad").input("dy").input("x", "dy").output("dx").shape([](ShapeContext& c) {
      detail::check_input(c, 0, part_of_batch(c, c.input(1)), "the rows of this part of x");
      c.set_output(0, c.input(1));
    })).gradient([](Scope& s, const Node& op, Output ddx) -> Outputs {
      return {s.add("BatchSlice", {ddx}, op.attrs()), Output()};
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

Output batch_slice(const Scope& s, Output x, std::int64_t index, std::int64_t parts) {
  return s.add("BatchSlice", {x}, {{"index", index}, {"parts", parts}});
}

Output reverse(const Scope& s, Output x, Dims axes) {
  return s.add("Reverse", {x}, {{"axes", std::move(axes)}});
}

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

namespace {

using Dims = std::vector<std::int64_t>;

Shape tiled(const ShapeContext& c, const Shape& x) {
  Dims dims = c.attr<Dims>("multiples");
  if (x.has_rank() && x.rank() != static_cast<int>(dims.size()))
    throw InvalidArgumentError("tile: x is {}, of {} dimensions, but {} multiples were given", x, x.rank(),
                               dims.size());
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] < 0)
      throw InvalidArgumentError("tile: the multiple of dimension {} is {}; it must not be negative", axis,
                                 dims[axis]);
    const std::int64_t dim = x.has_rank() ? x.dims()[axis] : -1;
    dims[axis] = dim < 0 ? -1 : detail::checked_multiply(dims[axis], dim);
  }
  return Shape(std::move(dims));
}

const RegisterOp tile_op(OpSchema("Tile")
                             .input("x")
                             .required_attr("multiples", Dims())
                             .output("y")
                             .shape([](ShapeContext& c) { c.set_output(0, tiled(c, c.input(0))); })
                             .gradient([](Scope& s, const Node& op, Output dy) -> Outputs {
                               return {s.add("TileGrad", {dy, op.input(0)}, op.attrs())};
                             }));

// Each element of dx is the sum of its repetitions in dy.
const RegisterOp tile_grad_op(OpSchema("TileGrad")
                                  .input("dy", {DType::f32, DType::f64})
                                  .input("x", "dy")
                                  .required_attr("multiples", Dims())
                                  .output("dx")
                                  .shape([](ShapeContext& c) {
                                    detail::check_input(c, 0, tiled(c, c.input(1)), "as x repeated");
                                    c.set_output(0, c.input(1));
                                  })
                                  .gradient([](Scope& s, const Node& op, Output ddx) -> Outputs {
                                    return {tile(s, ddx, op.attr<Dims>("multiples")), Output()};
                                  }));

void broadcast_shape(ShapeContext& c) {
  const Shape &x = c.input(0), wanted = c.attr<Shape>("shape");
  if (!x.has_rank()) return c.set_output(0, wanted);
  const int missing = wanted.rank() - x.rank();  // dimensions in front of those that x has
  bool fits = missing >= 0;
  Dims dims = wanted.dims();
  for (int axis = 0; fits && axis < wanted.rank(); ++axis) {
    if (axis < missing) {
      fits = dims[axis] >= 0;
      continue;
    }
    const std::int64_t own = x.dim(axis - missing);
    if (dims[axis] < 0) dims[axis] = own;
    fits = own < 0 || own == 1 || own == dims[axis];
  }
  if (!fits) throw InvalidArgumentError("broadcast_to: {} cannot be repeated to {}", x, wanted);
  c.set_output(0, Shape(std::move(dims)));
}

const RegisterOp broadcast_to_op(OpSchema("BroadcastTo")
                                     .input("x")
                                     .required_attr("shape", Shape())
                                     .output("y")
                                     .shape(broadcast_shape)
                                     .gradient([](Scope& s, const Node& op, Output dy) {
                                       return Outputs{sum_like(s, dy, op.input(0))};
                                     }));

}  // namespace

Output tile(const Scope& s, Output x, Dims multiples) {
  return s.add("Tile", {x}, {{"multiples", std::move(multiples)}});
}
Output broadcast_to(const Scope& s, Output x, Shape shape) {
  if (!shape.has_rank())
    throw InvalidArgumentError("broadcast_to of {} needs a shape of known rank", x.name());
  return s.add("BroadcastTo", {x}, {{"shape", std::move(shape)}});
}

}  // namespace kolo

namespace kolo::detail {
namespace {

bool has(std::int64_t mask, std::size_t entry) { return (mask >> entry & 1) != 0; }

class Resolver {
 public:
  Resolver(const SliceSpec& spec, const Shape& x) : spec_(spec), x_(x) {}

  ResolvedSlice run() {
    const std::int64_t free = free_dimensions();
    bool ellipsis = false;
    for (std::size_t entry = 0; entry < spec_.begin.size(); ++entry) {
      if (has(spec_.masks.ellipsis, entry)) {
        ellipsis = true;
        for (std::int64_t i = 0; i < free; ++i) take_whole();
      } else if (has(spec_.masks.new_axis, entry)) {
        dims_.push_back(1);
      } else if (has(spec_.masks.shrink_axis, entry)) {
        take_element(entry);
      } else {
        take_range(entry);
      }
    }
    // Without an ellipsis one stands behind the last entry.
    for (std::int64_t i = 0; !ellipsis && i < free; ++i) take_whole();
    slice_.result = Shape(std::move(dims_));
    return std::move(slice_);
  }

 private:
  // Dimensions of x that no entry but an ellipsis is for.
  std::int64_t free_dimensions() const {
    std::int64_t taken = 0, ellipses = 0;
    for (std::size_t entry = 0; entry < spec_.begin.size(); ++entry) {
      if (has(spec_.masks.ellipsis, entry)) ++ellipses;
      else if (!has(spec_.masks.new_axis, entry)) ++taken;
    }
    if (ellipses > 1)
      throw InvalidArgumentError("strided_slice: {} ellipses were given; one is allowed", ellipses);
    if (taken > x_.rank())
      throw InvalidArgumentError("strided_slice: x is {}, of {} dimensions, but {} indices were given", x_,
                                 x_.rank(), taken);
    return x_.rank() - taken;
  }

  int axis() const { return static_cast<int>(slice_.begin.size()); }

  void take(std::int64_t begin, std::int64_t stride, std::int64_t count) {
    slice_.begin.push_back(begin);
    slice_.stride.push_back(stride);
    slice_.count.push_back(count);
  }

  void take_whole() {
    dims_.push_back(x_.dim(axis()));
    take(0, 1, dims_.back());
  }

  void take_element(std::size_t entry) {
    const std::int64_t dim = x_.dim(axis()), asked = spec_.begin[entry];
    if (spec_.strides[entry] <= 0)
      throw InvalidArgumentError(
          "strided_slice: the stride of the single element {} is {}; it must be positive", asked,
          spec_.strides[entry]);
    const std::int64_t index = asked < 0 && dim >= 0 ? asked + dim : asked;
    if (dim >= 0 && (index < 0 || index >= dim))
      throw InvalidArgumentError("slice index {} of dimension {} out of bounds: x is {}", asked, axis(), x_);
    take(index, 1, 1);
  }

  void take_range(std::size_t entry) {
    const std::int64_t dim = x_.dim(axis()), stride = spec_.strides[entry];
    if (stride == 0) throw InvalidArgumentError("strided_slice: strides[{}] must be non-zero", entry);
    if (dim < 0) {
      dims_.push_back(-1);
      return take(0, stride, -1);
    }
    // Backwards the elements end before 0, at −1.
    const std::int64_t lowest = stride > 0 ? 0 : -1, highest = stride > 0 ? dim : dim - 1;
    const auto place = [&](std::int64_t asked) {
      return std::clamp(asked < 0 ? asked + dim : asked, lowest, highest);
    };
    const std::int64_t first = stride > 0 ? lowest : highest, last = stride > 0 ? highest : lowest;
    const std::int64_t begin = has(spec_.masks.begin, entry) ? first : place(spec_.begin[entry]);
    const std::int64_t end = has(spec_.masks.end, entry) ? last : place(spec_.end[entry]);
    const std::int64_t way = stride > 0 ? end - begin : begin - end;
    // Rounded up; strides longer than the way, up to −2^63, take the first element alone.
    const std::int64_t count = way <= 0 ? 0 : 1 + (stride > 0 ? (way - 1) / stride : -((way - 1) / stride));
    dims_.push_back(count);
    // Where there is no second element the way to it, and without a first its place, must not overflow.
    take(count > 0 ? begin : 0, count > 1 ? stride : 1, count);
  }

  const SliceSpec& spec_;
  const Shape& x_;
  ResolvedSlice slice_;
  std::vector<std::int64_t> dims_;
};

}  // namespace

ResolvedSlice resolve_slice(const SliceSpec& spec, const Shape& x) { return Resolver(spec, x).run(); }

}  // namespace kolo::detail
