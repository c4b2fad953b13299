#include <kolo/core/ops/segment_sum.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/gather.h>

namespace kolo {
namespace {

const std::vector<DType> kSummed = {DType::f32, DType::f64, DType::i32, DType::i64};
const std::vector<DType> kIndex = {DType::i32, DType::i64};

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

}  // namespace

Output unsorted_segment_sum(const Scope& s, Output rows, Output segments, std::int64_t num_segments) {
  check_num_segments(num_segments);
  return s.add("UnsortedSegmentSum", {rows, segments}, {{"num_segments", num_segments}});
}

}  // namespace kolo
