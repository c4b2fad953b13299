// Adam, Kingma and Ba 2014, in the form of the paper's last remark of section 2 ("epsilon hat"); and AdamW.
#pragma once

#include <string>

#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

/// Numbers of AdamOptimizer.
struct AdamOptions {
  Hyperparameter learning_rate = 0.001;
  Hyperparameter beta1 = 0.9;     // of the mean of gradients, in [0, 1)
  Hyperparameter beta2 = 0.999;   // of the mean of their squares, in [0, 1)
  Hyperparameter epsilon = 1e-8;  // added to the root, which is not corrected for its start at 0
};

/// In update t, from 1: rate = learning_rate · √(1 − beta2ᵗ) / (1 − beta1ᵗ); m += (gradient − m)(1 − beta1);
/// w += (gradient² − w)(1 − beta2); v −= rate · m / (√w + epsilon).
/// Slots: "m", "v"; the powers of the betas are two scalar variables, beta1_power and beta2_power, multiplied
/// once after all updates. Slices move all rows: those that they do not list as with a gradient of 0.
/// One thread at a time, as Optimizer.
class AdamOptimizer : public RuleOptimizer {
 public:
  /// Throws InvalidArgumentError for a beta outside [0, 1) or a negative epsilon.
  explicit AdamOptimizer(AdamOptions options = {}) : AdamOptimizer("Adam", options) {}
  explicit AdamOptimizer(Hyperparameter learning_rate)
      : AdamOptimizer(AdamOptions{.learning_rate = learning_rate}) {}

  bool is_element_wise() const override { return true; }

 protected:
  /// For rules that keep the same state under another name.
  AdamOptimizer(std::string name, AdamOptions options);

  void create_slots(const Scope& s, std::span<const Variable> variables) override;
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override;
  Operation finish(const Scope& s, const std::vector<Operation>& updates) override;

  /// As the rules "Adam" and "AdamW" take them, without the decay.
  Outputs scalars(const Variable& variable);
  const AdamOptions& options() const { return options_; }

 private:
  AdamOptions options_;
  Variable beta1_power_;
  Variable beta2_power_;
};

/// Numbers of AdamWOptimizer.
struct AdamWOptions {
  Hyperparameter learning_rate = 0.001;
  Hyperparameter beta1 = 0.9;
  Hyperparameter beta2 = 0.999;
  Hyperparameter epsilon = 1e-8;
  Hyperparameter weight_decay = 0.01;  // part of the variable that a step with learning_rate 1 takes away
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR
/// 2019): v −= learning_rate · weight_decay · v before Adam's step. State as Adam's, under its own name.
/// One thread at a time, as Optimizer.
class AdamWOptimizer : public AdamOptimizer {
 public:
  explicit AdamWOptimizer(AdamWOptions options = {});

 protected:
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override;

 private:
  Hyperparameter weight_decay_;
};

}  // namespace kolo
