// RMSProp, Tieleman and Hinton, lecture 6.5 of "Neural networks for machine learning", 2012; centred as in
// Graves, arXiv:1308.0850.
#pragma once

#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

/// Numbers of RMSPropOptimizer.
struct RMSPropOptions {
  Hyperparameter learning_rate = 0.001;
  Hyperparameter decay = 0.9;  // of the means, in [0, 1)
  Hyperparameter momentum = 0.0;
  Hyperparameter epsilon = 1e-10;  // inside the root
  bool centered = false;           // divide by the deviation instead of the root of the mean square
};

/// ms += (gradient² − ms)(1 − decay), from 1 as in TensorFlow 1; centred: mg += (gradient − mg)(1 − decay),
/// from 0, and den = ms − mg² + epsilon, else den = ms + epsilon; mom = momentum · mom + learning_rate ·
/// gradient / √den; v −= mom. Slots: "rms", centred "mg", "momentum". Slices touch the rows that they list
/// alone. One thread at a time, as Optimizer.
class RMSPropOptimizer : public RuleOptimizer {
 public:
  explicit RMSPropOptimizer(RMSPropOptions options = {}) : RuleOptimizer("RMSProp"), options_(options) {}
  explicit RMSPropOptimizer(Hyperparameter learning_rate)
      : RMSPropOptimizer(RMSPropOptions{.learning_rate = learning_rate}) {}

  bool is_element_wise() const override { return true; }

 protected:
  void create_slots(const Scope& s, std::span<const Variable> variables) override;
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override;

 private:
  RMSPropOptions options_;
};

}  // namespace kolo
