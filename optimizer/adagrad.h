// Adagrad, JMLR 12 (2011), diagonal form.
#pragma once

#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

/// a += gradient²; v −= learning_rate · gradient / √a. There is no epsilon: the accumulator starts at
/// `initial_accumulator_value`, 0.1 as in TensorFlow 1. Slot: "accumulator". Slices touch the rows that they
/// list alone.
class AdagradOptimizer : public RuleOptimizer {
 public:
  /// Throws InvalidArgumentError `initial_accumulator_value must be positive: <x>`.
  explicit AdagradOptimizer(Hyperparameter learning_rate, double initial_accumulator_value = 0.1);

  bool is_element_wise() const override { return true; }

 protected:
  void create_slots(const Scope& s, std::span<const Variable> variables) override;
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override;

 private:
  Hyperparameter learning_rate_;
  double initial_accumulator_value_;
};

}  // namespace kolo
