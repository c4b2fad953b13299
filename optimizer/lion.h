// Lion, Chen et al., "Symbolic discovery of optimization algorithms", arXiv:2302.06675.
#pragma once

#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

/// Numbers of LionOptimizer.
struct LionOptions {
  Hyperparameter learning_rate = 0.0001;  // steps have this size: 3 to 10 times less than Adam's
  Hyperparameter beta1 = 0.9;             // of what gives the direction, in [0, 1)
  Hyperparameter beta2 = 0.99;            // of what is kept, in [0, 1)
  Hyperparameter weight_decay = 0.0;      // decoupled, as in AdamW
};

/// c = beta1 · m + (1 − beta1) · gradient; v −= learning_rate · (sign(c) + weight_decay · v);
/// m = beta2 · m + (1 − beta2) · gradient. Slot: "m". Slices move all rows: those that they do not list as
/// with a gradient of 0. One thread at a time, as Optimizer.
class LionOptimizer : public RuleOptimizer {
 public:
  explicit LionOptimizer(LionOptions options = {}) : RuleOptimizer("Lion"), options_(options) {}
  explicit LionOptimizer(Hyperparameter learning_rate)
      : LionOptimizer(LionOptions{.learning_rate = learning_rate}) {}

  bool is_element_wise() const override { return true; }

 protected:
  void create_slots(const Scope& s, std::span<const Variable> variables) override;
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override;

 private:
  LionOptions options_;
};

}  // namespace kolo
