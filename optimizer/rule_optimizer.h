// An optimizer that is given by a rule for one variable: all of kolo's own, and the place to start one's own.
// And the numbers that steer it.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <kolo/core/graph/scope.h>
#include <kolo/optimizer/optimizer.h>

namespace kolo {

/// A number that steers an optimizer: fixed, or computed in the graph.
/// A value. A number is kept in f64, so that 0.1 is not 0.1f for a variable of type f64; an Output is a
/// floating point scalar of the graph (a placeholder, a schedule over the global step) and is read anew in
/// every step.
class Hyperparameter {
 public:
  template <typename Number>
  requires std::is_arithmetic_v<Number> Hyperparameter(Number value) : value_(static_cast<double>(value)) {}
  /// Throws InvalidArgumentError unless it is a floating point scalar.
  Hyperparameter(Output value);

  /// The value, unless it is computed in the graph.
  std::optional<double> number() const;
  /// As a scalar of its own type where it is computed in the graph, else of type `dtype`.
  Output in_graph(const Scope& s, DType dtype, const std::string& name) const;
  /// As a scalar of type `dtype`; a node that it takes is named `name`.
  Output scalar(const Scope& s, DType dtype, const std::string& name) const;

 private:
  std::variant<double, Output> value_;
};

/// A sub-class says in apply how a variable takes its gradient:
///
///   class SignDescentOptimizer : public RuleOptimizer {
///    public:
///     explicit SignDescentOptimizer(Hyperparameter rate) : RuleOptimizer("SignDescent"), rate_(rate) {}
///
///    protected:
///     Operation apply(const Scope& s, Output gradient, const Variable& variable) override {
///       const Output rate = scalar(rate_, variable, "rate");
///       return assign_sub(s, variable, mul(s, sign(s, gradient), rate));
///     }
///
///    private:
///     Hyperparameter rate_;
///   };
///
/// Slots are variables named `<variable>/<optimizer>` (the second one `…_1`), placed with their variable, in
/// the collection of global variables and not trainable. They are made when gradients are first applied and
/// used again after that. A rule like this one, which treats each element by itself, may say so by overriding
/// is_element_wise. One thread at a time, as Optimizer.
class RuleOptimizer : public Optimizer {
 public:
  using Optimizer::Optimizer;

  Operation apply_gradients(Scope& s, std::span<const GradientPair> gradients,
                            const ApplyOptions& options = {}) final;
  Variable find_slot(const Variable& variable, const std::string& slot) const final;

 protected:
  // apply_gradients calls these three in this order.

  /// Makes what apply needs, for the variables that have a gradient.
  virtual void create_slots(const Scope& /*s*/, std::span<const Variable> /*variables*/) {}
  /// Updates the variable and its slots; `s` is colocated with the variable. A gradient that is slices may be
  /// taken as such (indexed_slices) or read as the tensor that it also is; apply_update does what is right.
  virtual Operation apply(const Scope& s, Output gradient, const Variable& variable) = 0;
  /// What is done once, after all updates. The result stands for them and that.
  virtual Operation finish(const Scope& s, const std::vector<Operation>& updates);

  /// The number as a scalar of the variable's type. Made once for each name and type, and shared by all
  /// variables: updates that share their scalars are one kernel call (core/passes/pipeline.h). For apply
  /// and finish.
  Output scalar(const Hyperparameter& number, const Variable& variable, const std::string& name);
  /// The slot that the rule calls `slot`, such as "momentum"; made with all elements `initial_value` if it is
  /// new.
  Variable create_slot(const Scope& s, const Variable& variable, const std::string& slot,
                       double initial_value = 0);
  /// State that belongs to no single variable: a scalar variable named `name`; made with the type of
  /// `neighbour` and placed with it if it is new.
  Variable create_scalar(const Scope& s, const Variable& neighbour, const std::string& name,
                         const Hyperparameter& initial_value);

 private:
  struct Shared {
    explicit Shared(Scope s) : scope(std::move(s)) {}
    Scope scope;
    std::map<std::pair<std::string, DType>, Output> scalars;
  };

  std::optional<Shared> shared_;                                   // while gradients are applied
  std::map<std::pair<std::string, const Node*>, Variable> slots_;  // by the rule's word and the variable
  std::map<std::string, Variable> scalars_;                        // by name
};

}  // namespace kolo
