// FTRL-Proximal, McMahan et al., "Ad click prediction: a view from the trenches", KDD 2013.
#pragma once

#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

/// Numbers of FtrlOptimizer.
struct FtrlOptions {
  Hyperparameter learning_rate = 0.001;
  Hyperparameter learning_rate_power = -0.5;  // at most 0
  double initial_accumulator_value = 0.1;     // positive
  Hyperparameter l1 = 0.0;                    // at least 0: makes variables exactly 0
  Hyperparameter l2 = 0.0;                    // at least 0: pulls towards 0
  Hyperparameter l2_shrinkage = 0.0;          // at least 0: of the loss, not of the accumulator
};

/// With p = learning_rate_power: n = a + gradient²; z += gradient + 2 · l2_shrinkage · v − (n⁻ᵖ − a⁻ᵖ) /
/// learning_rate · v; v = (sign(z) · l1 − z) / (n⁻ᵖ / learning_rate + 2 · l2) where |z| > l1, else 0; a = n.
/// Slots: "accum" (a), "linear" (z, from 0). Slices touch the rows that they list alone.
/// One thread at a time, as Optimizer.
class FtrlOptimizer : public RuleOptimizer {
 public:
  /// Throws InvalidArgumentError `initial_accumulator_value must be positive: <x>`, and for an l1, l2 or
  /// shrinkage below 0 or a power above it.
  explicit FtrlOptimizer(FtrlOptions options = {});
  explicit FtrlOptimizer(Hyperparameter learning_rate)
      : FtrlOptimizer(FtrlOptions{.learning_rate = learning_rate}) {}

  bool is_element_wise() const override { return true; }

 protected:
  void create_slots(const Scope& s, std::span<const Variable> variables) override;
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override;

 private:
  FtrlOptions options_;
};

}  // namespace kolo
