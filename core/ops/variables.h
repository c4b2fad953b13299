// Tensors that keep their value from run to run, parts of them, and what updates them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

// Variables.

/// Of one variable.
struct VariableOptions {
  bool trainable = true;  // in the collection trainable_variables: optimizers update it
  bool local = false;     // in local_variables instead of variables: never saved, never broadcast
  /// In a cluster, sessions that give the same one (and container) share the variable; "": its own name.
  std::string shared_name = {};
};

/// A handle, as cheap as an Output, and a value. Variable `v` is the nodes v (the storage), v/Assign (its
/// initialiser) and v/read.
class Variable {
 public:
  Variable() = default;
  /// Makes the variable named s.named(…) ("Variable" without) whose first value is `initial_value`, of known
  /// shape. Throws InvalidArgumentError if the shape is not fully known.
  Variable(const Scope& s, Output initial_value, VariableOptions options = {});
  /// The handle of an existing one, from its storage node.
  static Variable of(const Node& storage);

  const std::string& name() const { return storage_->name(); }
  DType dtype() const { return storage_->output_dtype(0); }
  const Shape& shape() const { return storage_->output_shape(0); }
  /// The storage itself, for ops that update it.
  Output ref() const { return {storage_, 0}; }
  /// The value, as each op that uses the variable sees it in its turn. Another view of it, identity(s, v) or
  /// a reshape, is the value of the time at which it was made.
  Output read() const { return {read_, 0}; }
  operator Output() const { return read(); }
  Operation initializer() const { return assign_; }
  explicit operator bool() const { return storage_ != nullptr; }
  bool operator==(const Variable&) const = default;

 private:
  const Node* storage_ = nullptr;
  const Node* assign_ = nullptr;
  const Node* read_ = nullptr;
};

/// Updates in place; the result is the variable's new value, which later updates leave as it is. Within one
/// run, ops on a variable take effect in the order in which they were created. `value` has the variable's
/// type and shape, else InvalidArgumentError `Assign requires shapes of both tensors to match. lhs shape= [2]
/// rhs shape= [3]`.
Output assign(const Scope& s, const Variable& v, Output value);
Output assign_add(const Scope& s, const Variable& v, Output value);
Output assign_sub(const Scope& s, const Variable& v, Output value);

/// The variables of a graph's collection, in the order in which they were made: those that checkpoints hold,
/// those that optimizers update, and those of this process alone.
std::vector<Variable> global_variables(const Graph& graph);
std::vector<Variable> trainable_variables(const Graph& graph);
std::vector<Variable> local_variables(const Graph& graph);
/// Runs the initialisers of all of `variables`, in no order.
Operation variables_initializer(const Scope& s, const std::vector<Variable>& variables,
                                const std::string& name = "init");
Operation global_variables_initializer(const Scope& s);

/// The graph's int64 scalar "global_step", not trainable. Throws InvalidArgumentError `"global_step" already
/// exists.`
Variable create_global_step(const Scope& s);
/// The one that there is, or a new one. Throws InvalidArgumentError `Existing "global_step" does not have
/// integer type`.
Variable get_or_create_global_step(const Scope& s);
/// None if the graph has no global step.
Variable find_global_step(const Graph& graph);

// A variable that is a range of another one's elements: for those who update a variable in parts.

/// The elements [first, first + count) of `v`, row-major, as a vector `<v>/shard`: no copy, but the same
/// memory, so that it is initialised, restored and saved with `v`. An update of one is an update of the
/// other, in the order of the graph. Asked for again, it is the same variable. It is in no collection. Throws
/// InvalidArgumentError if the range does not lie in `v`, or `v` is itself a part.
Variable variable_part(const Scope& s, const Variable& v, std::int64_t first, std::int64_t count);

/// True for `<v>/read`: who reads its output reads the variable, when it is its own turn.
bool is_variable_read(const Node& node);

/// The storage that `storage` is a part of; itself where it is no part.
const Node& whole_storage(const Node& storage);
/// What `variable` is a part of; itself where it is no part.
Variable whole_variable(const Variable& variable);

// Rows of a variable, changed in place.

/// Row indices[i] of the variable takes updates[i]: added, subtracted or put in its place; the other rows
/// stay. indices: i32 or i64, any shape; updates: of the variable's type, the shape of indices and behind it
/// a row's. One after the other in the order of `indices`, so that a row that is listed twice takes both, and
/// of scatter_update the last. The result is the variable's new value. Throw InvalidArgumentError for shapes
/// that do not fit, and when run, before anything is changed, `Index <i> at offset <o> in indices is out of
/// range`.
Output scatter_add(const Scope& s, const Variable& v, Output indices, Output updates);
Output scatter_sub(const Scope& s, const Variable& v, Output indices, Output updates);
Output scatter_update(const Scope& s, const Variable& v, Output indices, Output updates);

// Updates that belong to a training step beside the optimizer's: the moving averages of batch normalization.

/// The collection of nodes that store a value of the forward pass in a variable, as Assign does.
inline constexpr char kUpdateOps[] = "update_ops";

/// `update`: a node whose inputs are a variable and what it is updated from.
void add_update_op(const Scope& s, Operation update);
/// In order of creation. Each acts at once when it is run.
std::vector<Operation> update_ops(const Graph& graph);

/// `step`, and after it every update of the collection whose value `loss` is computed together with: what
/// Optimizer::minimize returns. Copies of the updates, which wait for `step`: a step that fails, or that the
/// other ranks do not apply, leaves the averages as they were. Returns `step` itself where there is none.
Operation with_updates(const Scope& s, Operation step, Output loss);

}  // namespace kolo
