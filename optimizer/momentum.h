// Gradient descent with momentum, Polyak's or Nesterov's.
#pragma once

#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

/// a = momentum · a + gradient, a₀ = 0; v −= learning_rate · a, or with Nesterov's form, which uses the new
/// a, v −= learning_rate · gradient + learning_rate · momentum · a. Slot: "momentum". Slices touch the rows
/// that they list alone: the momentum of the others does not decay. One thread at a time, as Optimizer.
class MomentumOptimizer : public RuleOptimizer {
 public:
  MomentumOptimizer(Hyperparameter learning_rate, Hyperparameter momentum, bool use_nesterov = false)
      : RuleOptimizer("Momentum"),
        learning_rate_(learning_rate),
        momentum_(momentum),
        use_nesterov_(use_nesterov) {}

  bool is_element_wise() const override { return true; }

 protected:
  void create_slots(const Scope& s, std::span<const Variable> variables) override;
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override;

 private:
  Hyperparameter learning_rate_;
  Hyperparameter momentum_;
  bool use_nesterov_;
};

}  // namespace kolo
