#include <kolo/core/ops/tile.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
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
