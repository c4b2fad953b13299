// Adadelta, Zeiler, arXiv:1212.5701.
#pragma once

#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

/// Numbers of AdadeltaOptimizer.
struct AdadeltaOptions {
  Hyperparameter learning_rate = 0.001;
  Hyperparameter rho = 0.95;  // of the means, in [0, 1)
  Hyperparameter epsilon = 1e-8;
};

/// a = rho · a + (1 − rho) · gradient²; u = √(d + epsilon) / √(a + epsilon) · gradient; v −= learning_rate ·
/// u; d = rho · d + (1 − rho) · u². Slots: "accum" (a), "accum_update" (d), from 0. Slices touch the rows
/// that they list alone. One thread at a time, as Optimizer.
class AdadeltaOptimizer : public RuleOptimizer {
 public:
  explicit AdadeltaOptimizer(AdadeltaOptions options = {}) : RuleOptimizer("Adadelta"), options_(options) {}
  explicit AdadeltaOptimizer(Hyperparameter learning_rate)
      : AdadeltaOptimizer(AdadeltaOptions{.learning_rate = learning_rate}) {}

  bool is_element_wise() const override { return true; }

 protected:
  void create_slots(const Scope& s, std::span<const Variable> variables) override;
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override;

 private:
  AdadeltaOptions options_;
};

}  // namespace kolo
