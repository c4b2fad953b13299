// An optimizer that is given by a rule for one variable: all of kolo's own, and the place to start one's own.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kolo/optimizer/hyperparameter.h>
#include <kolo/optimizer/optimizer.h>

namespace kolo {

/// A sub-class says in apply_dense how a variable takes its gradient:
///
///   class SignDescentOptimizer : public RuleOptimizer {
///    public:
///     explicit SignDescentOptimizer(Hyperparameter rate) : RuleOptimizer("SignDescent"), rate_(rate) {}
///
///    protected:
///     Operation apply_dense(const Scope& s, Output gradient, const Variable& variable) override {
///       const Output rate = rate_.scalar(s, variable.dtype(), "rate");
///       return assign_sub(s, variable, mul(s, sign(s, gradient), rate));
///     }
///
///    private:
///     Hyperparameter rate_;
///   };
///
/// Slots are variables named `<variable>/<optimizer>` (the second one `…_1`), placed with their variable, in
/// the collection of global variables and not trainable. They are made when gradients are first applied and
/// used again after that.
class RuleOptimizer : public Optimizer {
 public:
  using Optimizer::Optimizer;

  Operation apply_gradients(Scope& s, std::span<const GradientPair> gradients,
                            const ApplyOptions& options = {}) final;
  Variable find_slot(const Variable& variable, const std::string& slot) const final;

 protected:
  // apply_gradients calls these three in this order.

  /// Makes what apply_dense needs, for the variables that have a gradient.
  virtual void create_slots(const Scope& /*s*/, std::span<const Variable> /*variables*/) {}
  /// Updates the variable and its slots; `s` is colocated with the variable.
  virtual Operation apply_dense(const Scope& s, Output gradient, const Variable& variable) = 0;
  /// What is done once, after all updates. The result stands for them and that.
  virtual Operation finish(const Scope& s, const std::vector<Operation>& updates);

  /// The slot that the rule calls `slot`, such as "momentum"; made with all elements `initial_value` if it is
  /// new.
  Variable create_slot(const Scope& s, const Variable& variable, const std::string& slot,
                       double initial_value = 0);
  /// State that belongs to no single variable: a scalar variable named `name`; made with the type of
  /// `neighbour` and placed with it if it is new.
  Variable create_scalar(const Scope& s, const Variable& neighbour, const std::string& name,
                         double initial_value);

 private:
  std::map<std::pair<std::string, const Node*>, Variable> slots_;  // by the rule's word and the variable
  std::map<std::string, Variable> scalars_;                        // by name
};

}  // namespace kolo
