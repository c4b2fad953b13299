// Tensors that keep their value from run to run.
#pragma once

#include <string>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

struct VariableOptions {
  bool trainable = true;  // in the collection trainable_variables: optimizers update it
  bool local = false;     // in local_variables instead of variables: never saved, never broadcast
};

/// A handle; as cheap as an Output. Variable `v` is the nodes v (the storage), v/Assign (its initialiser) and
/// v/read.
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
  /// The value, as the ops that use the variable see it.
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

/// Updates in place; the result is the variable's new value. Within one run, ops on a variable take effect in
/// the order in which they were created. `value` has the variable's type and shape, else InvalidArgumentError
/// `Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= [3]`.
Output assign(const Scope& s, const Variable& v, Output value);
Output assign_add(const Scope& s, const Variable& v, Output value);
Output assign_sub(const Scope& s, const Variable& v, Output value);

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

}  // namespace kolo
