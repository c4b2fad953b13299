// Variables in parts, and what cuts them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/variables.h>

namespace kolo {

// Rows sorted into several tensors by numbers that say where each belongs, and joined again. Any type but
// string; on CPUs.

/// `parts` tensors: part k holds, in their order, the rows of x whose number in `partitions` is k.
/// partitions: i32 or i64, of the shape of x's first dimensions, each row of x being what lies behind them.
/// How many rows a part has only a step tells. A number outside [0, parts): InvalidArgumentError
/// `partitions[<o>] = <p> is not in [0, <parts>)` when it is run.
Outputs dynamic_partition(const Scope& s, Output x, Output partitions, int parts);

/// The rows of all xs in one tensor, whose row indices[k][i] is xs[k][i]. indices: i32 or i64, of the shape
/// of the first dimensions of their x. The result has as many rows as the largest index asks for; one that
/// nobody names is 0, and of several the last one stays: of the last x, there the last. A negative index:
/// InvalidArgumentError `Index <i> at offset <o> in indices is out of range` when it is run.
Output dynamic_stitch(const Scope& s, const Outputs& indices, const Outputs& xs);

// Variables that are cut along a dimension into parts, which may lie on several devices.

// How a variable is cut: a function of its shape and type, which says for each dimension into how many parts.

using Partitioner = std::function<std::vector<std::int64_t>(const Shape& shape, DType dtype)>;

/// n parts of dimension `axis`; as many as it has elements where these are fewer. All three throw
/// InvalidArgumentError for numbers below 1, and when they are called, for an axis that the shape lacks.
Partitioner fixed_size(std::int64_t n, int axis = 0);
/// As few as possible, none over max_bytes, but that a slice across the axis is not divided; at most
/// max_shards.
Partitioner variable_axis_size(std::int64_t max_bytes, int axis = 0,
                               std::optional<std::int64_t> max_shards = {});
/// As many as there are min_slice bytes in the whole, at most max_parts.
Partitioner min_max(std::int64_t max_parts, int axis = 0, std::int64_t min_slice = 262144);

// Variables in parts.

/// The first value of a part, of its shape: [](const Scope& s, const Shape& part) { return glorot_uniform(s,
/// DType::f32, part); }.
using PartInitializer = std::function<Output(const Scope& s, const Shape& part)>;

/// Of all parts of a partitioned_variable.
struct PartitionedVariableOptions {
  DType dtype = DType::f32;  // of what the initializer returns
  bool trainable = true;     // as VariableOptions
  bool local = false;
};

/// A value: the handle of variables `<name>/part_0`, `<name>/part_1`, … that together are one tensor.
/// Whatever treats variables (optimizers, device functions, initialisers) treats each part as one;
/// checkpoints hold the whole under `<name>`, so that any number of parts is restored from it, and a plain
/// variable of that name.
class PartitionedVariable {
 public:
  PartitionedVariable() = default;

  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return parts_.front().dtype(); }
  /// The dimension that is cut.
  int axis() const { return axis_; }
  const std::vector<Variable>& parts() const { return parts_; }
  /// The whole, as the parts are when it is this op's turn: a new node, but with a single part.
  Output read(const Scope& s) const;

 private:
  friend PartitionedVariable partitioned_variable(const Scope& s, const Shape& shape,
                                                  const PartInitializer& initializer,
                                                  const Partitioner& partitioner,
                                                  const PartitionedVariableOptions& options);

  std::string name_;
  Shape shape_;
  int axis_ = 0;
  std::vector<Variable> parts_;
};

/// Makes a variable named s.named(…) in parts whose sizes differ by at most 1, the larger ones first. First
/// values stand outside of all device scopes, so that they are made where their part lies. Throws
/// InvalidArgumentError for a shape that is not fully known, a partitioner that does not fit it or cuts more
/// than one dimension, and an initializer that returns another shape or type.
PartitionedVariable partitioned_variable(const Scope& s, const Shape& shape,
                                         const PartInitializer& initializer, const Partitioner& partitioner,
                                         const PartitionedVariableOptions& options = {});

/// Where id i of a table in n parts lies. mod: row ⌊i / n⌋ of part i mod n, so that with another number of
/// parts ids have other rows. div: row i of the whole as it is read.
enum class PartitionStrategy { mod, div };

/// The rows of a table [words, …] in parts that `ids` (i32 or i64, any shape) name. Rows are gathered where
/// their part lies: they alone travel. The gradient of each part is slices (indexed_slices.h). parts: at
/// least one, of one type and alike but for their rows, of which the first parts may have one more, as
/// partitioned_variable cuts them; else InvalidArgumentError. An id of no row is an InvalidArgumentError when
/// it is run.
Output embedding_lookup(const Scope& s, const std::vector<Variable>& parts, Output ids,
                        PartitionStrategy strategy = PartitionStrategy::mod);
/// `table` is cut along dimension 0.
Output embedding_lookup(const Scope& s, const PartitionedVariable& table, Output ids,
                        PartitionStrategy strategy = PartitionStrategy::mod);

// For those who save variables or keep state beside them.

/// The variable is the elements [first, first + its own size) along `axis` of a whole that is no variable.
struct VariableSlice {
  std::string whole;
  Shape shape;  // of the whole
  int axis = 0;
  std::int64_t first = 0;
  bool operator==(const VariableSlice&) const = default;
};
/// Notes it in the graph (and in an exported one). Throws InvalidArgumentError if the slice does not lie in
/// the whole.
void set_variable_slice(Graph& graph, const Variable& variable, const VariableSlice& slice);
/// None, where nothing was noted.
std::optional<VariableSlice> variable_slice(const Variable& variable);

}  // namespace kolo
