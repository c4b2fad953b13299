// Plain stochastic gradient descent.
#pragma once

#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

/// v −= learning_rate · gradient. Slices touch the rows that they list alone.
/// One thread at a time, as Optimizer.
class GradientDescentOptimizer : public RuleOptimizer {
 public:
  explicit GradientDescentOptimizer(Hyperparameter learning_rate)
      : RuleOptimizer("GradientDescent"), learning_rate_(learning_rate) {}

  bool is_element_wise() const override { return true; }

 protected:
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override;

 private:
  Hyperparameter learning_rate_;
};

}  // namespace kolo
