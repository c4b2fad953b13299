#include <kolo/core/ops/gather.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/reshape.h>
#include <kolo/core/ops/shape_checks.h>

namespace kolo {
namespace {

using Dims = std::vector<std::int64_t>;

const std::vector<DType> kNumeric = {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean,
                                     DType::u8,  DType::i8,  DType::f16, DType::bf16};
const std::vector<DType> kIndex = {DType::i32, DType::i64};

Shape gathered(const ShapeContext& c, const Shape& params, const Shape& indices) {
  if (!params.has_rank()) return params;
  const int wished = c.attr<int>("axis");
  const int axis = wished < 0 ? wished + params.rank() : wished;
  if (axis < 0 || axis >= params.rank())
    throw InvalidArgumentError("gather: axis {} is outside the dimensions of {}", wished, params);
  if (!indices.has_rank()) return indices;
  Dims dims(params.dims().begin(), params.dims().begin() + axis);
  dims.insert(dims.end(), indices.dims().begin(), indices.dims().end());
  dims.insert(dims.end(), params.dims().begin() + axis + 1, params.dims().end());
  return Shape(std::move(dims));
}

// dy as rows of params, one for each index; an empty output where their shape cannot be told.
Output rows_of(const Scope& s, Output dy, const Shape& params, const Shape& indices) {
  if (indices.has_rank() && indices.rank() == 1) return dy;
  if (!params.has_rank()) return {};
  Dims dims = params.dims();
  dims[0] = indices.is_fully_known() ? indices.elements() : -1;
  std::int64_t unknown = 0;
  for (const std::int64_t dim : dims) unknown += dim < 0;
  // A row without elements leaves open how many rows there are.
  if (unknown > 1 || (unknown == 1 && Shape(dims).with_dim(0, 1).elements() == 0)) return {};
  return reshape(s, dy, Shape(std::move(dims)));
}

Outputs gather_gradient(Scope& s, const Node& op, Output dy) {
  const Output params = op.input(0), indices = op.input(1);
  const int axis = op.attr<int>("axis");
  const bool first = axis == 0 || (params.shape().has_rank() && axis == -params.shape().rank());
  const Output rows = first ? rows_of(s, dy, params.shape(), indices.shape()) : Output();
  if (!rows) return {s.add("GatherGrad", {dy, indices, params}, {{"axis", axis}}), Output()};
  IndexedSlices slices = {.values = rows, .indices = indices, .dense_shape = params.shape()};
  if (rows != dy) slices.indices = reshape(s, indices, {rows.shape().dim(0)});
  if (!params.shape().is_fully_known()) slices.like = params;
  return {to_dense(s, slices), Output()};
}

const RegisterOp gather_op(OpSchema("Gather")
                               .input("params", kNumeric)
                               .input("indices", kIndex)
                               .attr("axis", 0)
                               .output("y")
                               .shape([](ShapeContext& c) {
                                 c.set_output(0, gathered(c, c.input(0), c.input(1)));
                               })
                               .gradient(gather_gradient));

// dy summed at the places in params' shape that it was gathered from.
const RegisterOp gather_grad_op(
    OpSchema("GatherGrad")
        .input("dy", {DType::f32, DType::f64})
        .input("indices", kIndex)
        .input("params", "dy")
        .attr("axis", 0)
        .output("dx")
        .shape([](ShapeContext& c) {
          detail::check_input(c, 0, gathered(c, c.input(2), c.input(1)), "as what is gathered from params");
          c.set_output(0, c.input(2));
        })
        .gradient([](Scope& s, const Node& op, Output ddx) {
          return Outputs{gather(s, ddx, op.input(1), op.attr<int>("axis")), Output(), Output()};
        }));

}  // namespace

Output gather(const Scope& s, Output params, Output indices, int axis) {
  return s.add("Gather", {params, indices}, {{"axis", axis}});
}
Output embedding_lookup(const Scope& s, Output table, Output ids) { return gather(s, table, ids); }

}  // namespace kolo
