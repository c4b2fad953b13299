// What turns a loss into updates of variables. Training code and wrappers see this interface; a rule of one's
// own derives from RuleOptimizer.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/variables.h>

namespace kolo {

/// The gradient of a loss with respect to a variable: of its shape and type, perhaps slices
/// (core/graph/indexed_slices.h), or empty where the loss does not depend on it.
struct GradientPair {
  Output gradient;
  Variable variable;
};

/// What an update waits for. `none` and `op`: for its own gradient; in kolo ops on a variable take effect in
/// the order of their creation, so that the gradients of an op see the values from before all updates either
/// way. `graph`: for the gradients of all variables.
enum class Gate { none, op, graph };

/// Of Optimizer::compute_gradients.
struct ComputeGradientsOptions {
  Gate gate = Gate::op;
  bool colocate_gradients_with_ops = false;  // each gradient is placed with the node that it differentiates
  Output grad_loss = {};                     // of the loss's shape, where that is not summed; none: ones
};

/// Of Optimizer::apply_gradients.
struct ApplyOptions {
  Variable global_step = {};  // incremented by 1 after all updates; none: nothing is counted
  std::string name = {};      // of the nodes that update; "": the optimizer's name
};

/// Of Optimizer::minimize.
struct MinimizeOptions {
  // Counts the updates; none: get_or_create_global_step. Each of two optimizers that minimize in one step
  // counts it: let the second one compute and apply gradients instead, without a global step.
  Variable global_step = {};
  std::vector<Variable> variables = {};  // what is updated; empty: the graph's trainable variables
  std::string name = {};                 // of the nodes that update; "": the optimizer's name
  ComputeGradientsOptions gradients = {};
};

/// Builds nodes into one graph, which must outlive it; one thread at a time.
class Optimizer {
 public:
  /// name: of its nodes and slots, such as "Adam".
  explicit Optimizer(std::string name) : name_(std::move(name)) {}
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  const std::string& name() const { return name_; }

  /// compute_gradients and apply_gradients in one: the operation that makes one training step. It ends with
  /// the update_ops that belong to the loss (core/ops/variables.h), such as batch normalization's moving
  /// averages. loss: f32|f64, any shape (summed). Throws as those two do, and InvalidArgumentError `No
  /// gradients provided for any variable, check your graph for ops that do not support gradients, between
  /// variables <vars> and loss <loss>.`
  Operation minimize(Scope& s, Output loss, const MinimizeOptions& options = {});

  /// Pairs (gradient, variable), in the order of `variables`.
  /// Throws InvalidArgumentError `No variables to optimize.` if there are none, or if one of them or the loss
  /// is not floating point; the graph is then unchanged.
  virtual std::vector<GradientPair> compute_gradients(Scope& s, Output loss,
                                                      std::span<const Variable> variables,
                                                      const ComputeGradientsOptions& options = {});
  /// For the graph's trainable variables.
  std::vector<GradientPair> compute_gradients(Scope& s, Output loss);

  /// The operation that updates every variable that has a gradient, and then the global step.
  /// Throws InvalidArgumentError `No variables provided.` without pairs, `No gradients provided for any
  /// variable: <vars>.` if all gradients are empty, or if one has not its variable's shape and type; the
  /// graph is then unchanged.
  virtual Operation apply_gradients(Scope& s, std::span<const GradientPair> gradients,
                                    const ApplyOptions& options = {}) = 0;

  /// The variable that keeps the rule's state `slot`, such as "momentum", for `variable`; none before
  /// gradients were applied to it, or if the rule has no such slot.
  virtual Variable find_slot(const Variable& variable, const std::string& slot) const = 0;

  /// True if a vector of some of a variable's elements (core/ops/variables.h), with their gradients, may
  /// take the variable's place: what becomes of an element and of its state follows from its own value,
  /// gradient and state, and from numbers that all variables share. Slots then have the variable's shape.
  /// Needed by DistributedOptimizerOptions::sharded.
  virtual bool is_element_wise() const { return false; }

 protected:
  /// The same gradients, each there only when all are: Gate::graph, for those who change gradients between
  /// computing and applying them.
  static std::vector<GradientPair> gated(const Scope& s, std::vector<GradientPair> pairs);

 private:
  std::string name_;
};

}  // namespace kolo
