#include <kolo/core/ops/indexing.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/dtypes.h>
#include <kolo/core/ops/shape_checks.h>
#include <kolo/core/ops/shapes.h>

namespace kolo {
namespace {

using Dims = std::vector<std::int64_t>;

using detail::kIndex;
using detail::kNumeric;

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

namespace {

void one_hot_shape(ShapeContext& c) {
  const Shape& indices = c.input(0);
  const auto depth = c.attr<std::int64_t>("depth");
  const int axis = c.attr<int>("axis");
  if (depth < 0) throw InvalidArgumentError("one_hot: the depth is {}; it must not be negative", depth);
  if (c.attr<DType>("dtype") == DType::string)
    throw InvalidArgumentError("one_hot: string was asked for; the result must be of numbers");
  if (!indices.has_rank()) return;
  if (axis < -1 || axis > indices.rank())
    throw InvalidArgumentError("one_hot: axis {} for indices {} must be in [-1, {}]", axis, indices,
                               indices.rank());
  std::vector<std::int64_t> dims = indices.dims();
  dims.insert(dims.begin() + (axis < 0 ? indices.rank() : axis), depth);
  c.set_output(0, Shape(std::move(dims)));
}

const RegisterOp one_hot_op(OpSchema("OneHot")
                                .input("indices", {DType::i32, DType::i64, DType::u8})
                                .required_attr("depth", 0)
                                .attr("on", 1.0)
                                .attr("off", 0.0)
                                .attr("axis", -1)
                                .attr("dtype", DType::f32)
                                .output("y", "dtype")
                                .shape(one_hot_shape)
                                .no_gradient());

}  // namespace

Output one_hot(const Scope& s, Output indices, std::int64_t depth, OneHotOptions options) {
  return s.add("OneHot", {indices},
               {{"depth", depth},
                {"on", options.on},
                {"off", options.off},
                {"axis", options.axis},
                {"dtype", options.dtype}});
}

namespace {

void top_k_shape(ShapeContext& c) {
  const Shape& x = c.input(0);
  const auto k = c.attr<std::int64_t>("k");
  if (k < 0) throw InvalidArgumentError("Need k >= 0, got {}", k);
  if (!x.has_rank()) return;
  if (x.rank() == 0) throw InvalidArgumentError("top_k: input must be >= 1-D, got shape {}", x);
  const std::int64_t columns = x.dim(-1);
  if (columns >= 0 && columns < k)
    throw InvalidArgumentError("input must have at least k columns. Had {}, needed {}", columns, k);
  if (columns > std::numeric_limits<std::int32_t>::max())
    throw InvalidArgumentError("top_k: x is {}; its last dimension must fit in i32", x);
  c.set_output(0, x.with_dim(-1, k));
  c.set_output(1, x.with_dim(-1, k));
}

const RegisterOp top_k_op(OpSchema("TopK")
                              .input("x", {DType::f32, DType::f64, DType::i32, DType::i64})
                              .attr("k", 1)
                              .output("values")
                              .output("indices", DType::i32)
                              .shape(top_k_shape)
                              .gradient([](Scope& s, const Node& op, Output dy) -> Outputs {
                                return {s.add("TopKGrad", {dy, op.output(1), op.input(0)})};
                              }));

void top_k_grad_shape(ShapeContext& c) {
  const Shape& x = c.input(2);
  if (x.has_rank() && x.rank() == 0)
    throw InvalidArgumentError("top_k: input must be >= 1-D, got shape {}", x);
  const Shape rows = x.has_rank() ? x.with_dim(-1, -1) : x;
  detail::check_input(c, 1, rows, "some columns of x");
  detail::check_input(c, 0, c.input(1).merged_with(rows), "as the indices");
  c.set_output(0, x);
}

// dy at the places that `indices` name, in zeros of x's shape.
const RegisterOp top_k_grad_op(OpSchema("TopKGrad")
                                   .input("dy", {DType::f32, DType::f64})
                                   .input("indices", {DType::i32})
                                   .input("x", "dy")
                                   .output("dx")
                                   .shape(top_k_grad_shape));

const RegisterOp in_top_k_op(
    OpSchema("InTopK")
        .input("predictions", {DType::f32, DType::f64})
        .input("targets", {DType::i32, DType::i64})
        .required_attr("k", 0)
        .output("precision", DType::boolean)
        .no_gradient()
        .shape([](ShapeContext& c) {
          const Shape &predictions = c.input(0), &targets = c.input(1);
          if (predictions.has_rank() && predictions.rank() != 2)
            throw InvalidArgumentError("in_top_k: predictions must be 2-dimensional; they are {}",
                                       predictions);
          if (targets.has_rank() && targets.rank() != 1)
            throw InvalidArgumentError("in_top_k: targets must be 1-dimensional; they are {}", targets);
          const std::int64_t rows = predictions.has_rank() ? predictions.dim(0) : -1,
                             count = targets.has_rank() ? targets.dim(0) : -1;
          if (rows >= 0 && count >= 0 && rows != count)
            throw InvalidArgumentError(
                "First dimension of predictions {} must match length of targets {}: they are {} and {}", rows,
                count, predictions, targets);
          c.set_output(0, {rows >= 0 ? rows : count});
        }));

}  // namespace

TopK top_k(const Scope& s, Output x, std::int64_t k) {
  const Operation op = s.add("TopK", {x}, {{"k", k}});
  return {op.output(0), op.output(1)};
}
Output in_top_k(const Scope& s, Output predictions, Output targets, std::int64_t k) {
  return s.add("InTopK", {predictions, targets}, {{"k", k}});
}

namespace {

const std::vector<DType> kSummed = {DType::f32, DType::f64, DType::i32, DType::i64};

void check_rows(const char* op, const Shape& rows, const Shape& numbers) {
  const bool vector = !numbers.has_rank() || numbers.rank() == 1;
  const bool has_rows = !rows.has_rank() || rows.rank() > 0;
  if (!vector || !has_rows ||
      (rows.has_rank() && numbers.has_rank() && !Shape({rows.dim(0)}).is_compatible_with(numbers)))
    throw InvalidArgumentError(
        "{}: the rows are {} and their numbers {}; numbers are a vector, one for each row", op, rows,
        numbers);
}

// The shape of the result: `wanted` rows that look like those of `rows`.
Shape result_shape(const char* op, const Shape& rows, const Shape& numbers, const Shape& wanted) {
  check_rows(op, rows, numbers);
  if (!rows.has_rank() || !wanted.has_rank()) return wanted;
  if (wanted.rank() != rows.rank() || !rows.with_dim(0, -1).is_compatible_with(wanted.with_dim(0, -1)))
    throw InvalidArgumentError("{}: the rows are {}, those of a tensor of {} are not alike", op, rows,
                               wanted);
  return rows.with_dim(0, -1).merged_with(wanted);
}

void check_num_segments(std::int64_t num_segments) {
  if (num_segments < 0)
    throw InvalidArgumentError("unsorted_segment_sum: num_segments is {}; it must not be negative",
                               num_segments);
}

void segment_sum_shape(ShapeContext& c) {
  const Shape& rows = c.input(0);
  check_rows("unsorted_segment_sum", rows, c.input(1));
  check_num_segments(c.attr<std::int64_t>("num_segments"));
  if (rows.has_rank()) c.set_output(0, rows.with_dim(0, c.attr<std::int64_t>("num_segments")));
}

Outputs rows_gradient(Scope& s, const Node& op, Output dy) {
  Outputs dx(op.inputs().size());
  dx[0] = gather(s, dy, op.input(1));
  return dx;
}

const RegisterOp segment_sum_op(OpSchema("UnsortedSegmentSum")
                                    .input("rows", kSummed)
                                    .input("segments", kIndex)
                                    .required_attr("num_segments", 0)
                                    .output("sums")
                                    .shape(segment_sum_shape)
                                    .gradient(rows_gradient));

// What to_dense of indexed_slices.h makes. The third input, if there is one, says the shape.
const RegisterOp slices_to_dense_op(OpSchema("SlicesToDense")
                                        .input("values", kSummed)
                                        .input("indices", kIndex)
                                        .variadic("like")
                                        .required_attr("dense_shape", Shape())
                                        .output("dense")
                                        .shape([](ShapeContext& c) {
                                          Shape shape = c.attr<Shape>("dense_shape");
                                          if (c.num_inputs() > 2) shape = shape.merged_with(c.input(2));
                                          c.set_output(0,
                                                       result_shape("slices", c.input(0), c.input(1), shape));
                                        })
                                        .gradient(rows_gradient));

const RegisterOp add_rows_op(OpSchema(detail::kAddRowsOp)
                                 .input("dense", {DType::f32, DType::f64})
                                 .input("indices", kIndex)
                                 .input("values", "dense")
                                 .output("sum", "dense")
                                 .shape([](ShapeContext& c) {
                                   c.set_output(0,
                                                result_shape("slices", c.input(2), c.input(1), c.input(0)));
                                 })
                                 .in_place(0)
                                 .made_by_pass());

}  // namespace

Output unsorted_segment_sum(const Scope& s, Output rows, Output segments, std::int64_t num_segments) {
  check_num_segments(num_segments);
  return s.add("UnsortedSegmentSum", {rows, segments}, {{"num_segments", num_segments}});
}

namespace {

bool is_exact_whole(double value) { return value == std::trunc(value) && std::abs(value) < 0x1p53; }

void range_shape(ShapeContext& c) {
  const DType dtype = c.attr<DType>("dtype");
  const double start = c.attr<double>("start"), limit = c.attr<double>("limit"),
               delta = c.attr<double>("delta");
  if (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::i32 && dtype != DType::i64)
    throw InvalidArgumentError("range makes f32, f64, i32 or i64; {} was asked for", dtype);
  if (!std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(delta) || delta == 0)
    throw InvalidArgumentError("range from {} to {} by {}: all must be finite, and the last not 0", start,
                               limit, delta);
  if (!is_floating(dtype))
    for (const double value : {start, limit, delta})
      if (!is_exact_whole(value))
        throw InvalidArgumentError("range of {}: {} is not a whole number below 2^53", dtype, value);
  if (dtype == DType::i32)
    for (const double value : {start, limit})
      if (value < std::numeric_limits<std::int32_t>::min() ||
          value > std::numeric_limits<std::int32_t>::max())
        throw InvalidArgumentError("range of {}: {} does not fit in 32 bits", dtype, value);
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (!(count < 0x1p53))
    throw InvalidArgumentError("range from {} to {} by {} is too long", start, limit, delta);
  c.set_output(0, {static_cast<std::int64_t>(count)});
}

const RegisterOp range_op(OpSchema("Range")
                              .required_attr("dtype", DType::f32)
                              .required_attr("start", 0.0)
                              .required_attr("limit", 0.0)
                              .required_attr("delta", 1.0)
                              .output("y", "dtype")
                              .shape(range_shape)
                              .no_gradient());

}  // namespace

Output range(const Scope& s, DType dtype, double start, double limit, double delta) {
  return s.add("Range", {}, {{"dtype", dtype}, {"start", start}, {"limit", limit}, {"delta", delta}});
}

}  // namespace kolo
