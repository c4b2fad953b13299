#include <kolo/core/ops/partitioned_variables.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/dtypes.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>

namespace kolo {
namespace {

using Dims = std::vector<std::int64_t>;

using detail::kIndex;
using detail::kNumeric;

// The dimensions of x behind those of its row numbers; unknown where either's rank is.
Shape row_of(const char* op, const Shape& x, const Shape& numbers) {
  if (!x.has_rank() || !numbers.has_rank()) return Shape::unknown_rank();
  const int prefix = numbers.rank();
  const bool fits = prefix <= x.rank() &&
                    Shape(Dims(x.dims().begin(), x.dims().begin() + prefix)).is_compatible_with(numbers);
  if (!fits)
    throw InvalidArgumentError("data.shape must start with {}.shape, got data.shape = {}, {}.shape = {}", op,
                               x, op, numbers);
  return Shape(Dims(x.dims().begin() + prefix, x.dims().end()));
}

Shape rows_like(std::int64_t rows, const Shape& row) {
  if (!row.has_rank()) return row;
  Dims dims = row.dims();
  dims.insert(dims.begin(), rows);
  return Shape(std::move(dims));
}

void check_parts(std::int64_t parts) {
  if (parts < 1) throw InvalidArgumentError("{} parts were asked for; there must be at least 1", parts);
}

// 0, 1, …: where each of the numbers stands.
Output positions_of(const Scope& s, Output numbers) {
  return cumsum(s, ones_like(s, numbers), 0, {.exclusive = true});
}

Output flattened(const Scope& s, Output x) {
  return x.shape().has_rank() && x.shape().rank() == 1 ? x : reshape(s, x, {-1});
}

// dys, with zeros where nothing depends on an output.
Outputs all_of(Scope& s, const Node& op, const Outputs& dys) {
  Outputs all;
  for (int k = 0; k < op.num_outputs(); ++k) all.push_back(dys[k] ? dys[k] : zeros_like(s, op.output(k)));
  return all;
}

Outputs partition_gradient(Scope& s, const Node& op, const Outputs& dy) {
  const Output partitions = flattened(s, op.input(1));
  const Outputs positions = dynamic_partition(s, positions_of(s, partitions), partitions, op.num_outputs());
  return {reshape_like(s, dynamic_stitch(s, positions, all_of(s, op, dy)), op.input(0)), Output()};
}

const RegisterOp partition_op(OpSchema("DynamicPartition")
                                  .input("x", kNumeric)
                                  .input("partitions", kIndex)
                                  .required_attr("num_partitions", 1)
                                  .output("parts", "num_partitions")
                                  .cpu_only()
                                  .shape([](ShapeContext& c) {
                                    check_parts(c.attr<std::int64_t>("num_partitions"));
                                    const Shape row = row_of("partitions", c.input(0), c.input(1));
                                    for (std::size_t k = 0; k < c.outputs().size(); ++k)
                                      c.set_output(static_cast<int>(k), rows_like(-1, row));
                                  })
                                  .gradient(partition_gradient));

void stitch_shape(ShapeContext& c) {
  const int parts = c.num_inputs() / 2;
  if (c.num_inputs() % 2 != 0)
    throw InvalidArgumentError("dynamic_stitch: {} tensors; each needs its indices", c.num_inputs());
  Shape row = Shape::unknown_rank();
  for (int k = 0; k < parts; ++k) {
    const DType index = c.dtype(parts + k);
    if (c.dtype(k) != c.dtype(0))
      throw InvalidArgumentError("dynamic_stitch: tensors must have one type; they are {} and {}", c.dtype(0),
                                 c.dtype(k));
    if (index != DType::i32 && index != DType::i64)
      throw InvalidArgumentError("dynamic_stitch: indices are i32 or i64; those of tensor {} are {}", k,
                                 index);
    const Shape own = row_of("indices", c.input(k), c.input(parts + k));
    if (!own.is_compatible_with(row))
      throw InvalidArgumentError("dynamic_stitch: rows of tensor {} are {}, those before it {}", k, own, row);
    row = row.merged_with(own);
  }
  c.set_output(0, rows_like(-1, row));
}

// The tensors, then the indices of each: the first input's type is the result's.
const RegisterOp stitch_op(
    OpSchema("DynamicStitch")
        .input("x", kNumeric)
        .variadic("xs_and_indices", {}, true)
        .output("y")
        .cpu_only()
        .shape(stitch_shape)
        .gradient([](Scope& s, const Node& op, Output dy) {
          const int parts = op.num_inputs() / 2;
          Outputs inputs = {dy}, dx(op.inputs().size());
          for (int k = 0; k < parts; ++k) inputs.push_back(op.input(parts + k));
          const Operation made = s.add("DynamicStitchGrad", inputs, {{"parts", parts}});
          for (int k = 0; k < parts; ++k) dx[k] = made.output(k);
          return dx;
        }));

void stitch_grad_shape(ShapeContext& c) {
  const auto parts = c.attr<std::int64_t>("parts");
  if (parts != c.num_inputs() - 1)
    throw InvalidArgumentError("{} parts need as many indices; these are {}", parts, c.num_inputs() - 1);
  const Shape& dy = c.input(0);
  if (!dy.has_rank()) return;
  if (dy.rank() == 0) throw InvalidArgumentError("dy is a scalar; it has no rows");
  for (int k = 1; k < c.num_inputs(); ++k) {
    if (!c.input(k).has_rank()) continue;
    Dims dims = c.input(k).dims();
    dims.insert(dims.end(), dy.dims().begin() + 1, dy.dims().end());
    c.set_output(k - 1, Shape(std::move(dims)));
  }
}

// Of each tensor's rows those of dy that came from it; 0 for one that a later row has written over.
const RegisterOp stitch_grad_op(OpSchema("DynamicStitchGrad")
                                    .input("dy", kNumeric)
                                    .variadic("indices", kIndex, true)
                                    .required_attr("parts", 1)
                                    .output("dx", "parts")
                                    .cpu_only()
                                    .shape(stitch_grad_shape)
                                    .gradient([](Scope& s, const Node& op, const Outputs& ddx) {
                                      const Outputs indices(op.inputs().begin() + 1, op.inputs().end());
                                      const Output rows = dynamic_stitch(s, indices, all_of(s, op, ddx));
                                      Outputs gradients(op.inputs().size());
                                      gradients[0] = reshape_like(s, rows, op.input(0));
                                      return gradients;
                                    }));

}  // namespace

Outputs dynamic_partition(const Scope& s, Output x, Output partitions, int parts) {
  check_parts(parts);
  const Operation made = s.add("DynamicPartition", {x, partitions}, {{"num_partitions", parts}});
  Outputs outputs;
  for (int k = 0; k < parts; ++k) outputs.push_back(made.output(k));
  return outputs;
}

Output dynamic_stitch(const Scope& s, const Outputs& indices, const Outputs& xs) {
  if (indices.size() != xs.size())
    throw InvalidArgumentError("dynamic_stitch: {} tensors and indices for {}", xs.size(), indices.size());
  Outputs inputs = xs;
  inputs.insert(inputs.end(), indices.begin(), indices.end());
  return s.add("DynamicStitch", inputs);
}

}  // namespace kolo
