// Adam, Kingma and Ba 2014, in the form of the paper's last remark of section 2 ("epsilon hat").
#pragma once

#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

struct AdamOptions {
  Hyperparameter learning_rate = 0.001;
  double beta1 = 0.9;     // of the mean of gradients, in [0, 1)
  double beta2 = 0.999;   // of the mean of their squares, in [0, 1)
  double epsilon = 1e-8;  // added to the root, which is not corrected for its start at 0
};

/// In update t, from 1: rate = learning_rate · √(1 − beta2ᵗ) / (1 − beta1ᵗ); m += (gradient − m)(1 − beta1);
/// w += (gradient² − w)(1 − beta2); v −= rate · m / (√w + epsilon).
/// Slots: "m", "v"; the powers of the betas are two scalar variables, beta1_power and beta2_power, multiplied
/// once after all updates.
class AdamOptimizer : public RuleOptimizer {
 public:
  /// Throws InvalidArgumentError for a beta outside [0, 1) or a negative epsilon.
  explicit AdamOptimizer(AdamOptions options = {});
  explicit AdamOptimizer(Hyperparameter learning_rate)
      : AdamOptimizer(AdamOptions{.learning_rate = learning_rate}) {}

 protected:
  void create_slots(const Scope& s, std::span<const Variable> variables) override;
  Operation apply_dense(const Scope& s, Output gradient, const Variable& variable) override;
  Operation finish(const Scope& s, const std::vector<Operation>& updates) override;

 private:
  AdamOptions options_;
  Variable beta1_power_;
  Variable beta2_power_;
};

}  // namespace kolo
