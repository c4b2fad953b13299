// Bernstein et al., "signSGD: compressed optimisation for non-convex problems", ICML 2018.
#pragma once

#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

/// v −= learning_rate · sign(gradient). No slots. One thread at a time, as Optimizer.
class SignDescentOptimizer : public RuleOptimizer {
 public:
  explicit SignDescentOptimizer(Hyperparameter learning_rate)
      : RuleOptimizer("SignDescent"), learning_rate_(std::move(learning_rate)) {}

 protected:
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override;

 private:
  Hyperparameter learning_rate_;
};

}  // namespace kolo
