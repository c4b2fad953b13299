// The rules by which optimizers update a variable, of which each treats a variable by itself.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

// Plain stochastic gradient descent.

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

// Gradient descent with momentum, Polyak's or Nesterov's.

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

// Adagrad, JMLR 12 (2011), diagonal form.

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

// Adadelta, Zeiler, arXiv:1212.5701.

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

// RMSProp, Tieleman and Hinton, lecture 6.5 of "Neural networks for machine learning", 2012; centred as in
// Graves, arXiv:1308.0850.

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

// Adam, Kingma and Ba 2014, in the form of the paper's last remark of section 2 ("epsilon hat"); and AdamW.

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

// FTRL-Proximal, McMahan et al., "Ad click prediction: a view from the trenches", KDD 2013.

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

// Lion, Chen et al., "Symbolic discovery of optimization algorithms", arXiv:2302.06675.

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

// LARS, You, Gitman and Ginsburg, "Large batch training of convolutional networks", arXiv:1708.03888, and
// LAMB, You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", ICLR 2020: the
// step of a layer is measured by the length of its weights.

namespace detail {
/// Parts of variables, of which each rank has one: they wait for the norms of all ranks' parts. One thread.
class WaitingParts {
 public:
  using Step = std::function<Operation(const Scope& s, Output step, const Variable& variable, Output v_norm,
                                       Output step_norm)>;
  void add(const Scope& s, Output step, const Variable& variable);
  /// `step` of each of them, with its norms; then none is left. norm: what the second norm is called.
  std::vector<Operation> finish(const Scope& s, const std::string& norm, const Step& step);

 private:
  struct Part {
    Scope scope;
    Output step;
    Variable variable;
  };
  std::vector<Part> parts_;
};
}  // namespace detail

/// Numbers of LARSOptimizer.
struct LARSOptions {
  Hyperparameter learning_rate = 0.001;
  Hyperparameter momentum = 0.9;
  Hyperparameter weight_decay = 1e-4;        // L2
  Hyperparameter trust_coefficient = 0.001;  // "eta"
};

/// LARS: d = gradient + weight_decay · v; ratio = trust_coefficient · ‖v‖ / (‖gradient‖ + weight_decay ·
/// ‖v‖), 1 where one of them is 0; a = momentum · a + learning_rate · ratio · d; v −= a. Slot: "momentum".
/// Variables of at most one dimension (biases, scales of normalization) take ratio 1 and no decay, as in
/// MLPerf's reference. Slices are taken as whole gradients. Made of ops: several passes over each variable,
/// unlike the other rules. Of parts of variables, of which each rank has one, it takes the norms over all
/// ranks. One thread at a time, as Optimizer.
class LARSOptimizer : public RuleOptimizer {
 public:
  explicit LARSOptimizer(LARSOptions options = {}) : RuleOptimizer("LARS"), options_(options) {}
  explicit LARSOptimizer(Hyperparameter learning_rate)
      : LARSOptimizer(LARSOptions{.learning_rate = learning_rate}) {}

  bool is_element_wise() const override { return true; }

 protected:
  void create_slots(const Scope& s, std::span<const Variable> variables) override;
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override;
  Operation finish(const Scope& s, const std::vector<Operation>& updates) override;

 private:
  Operation step(const Scope& s, Output gradient, const Variable& variable, Output v_norm,
                 Output gradient_norm);
  Operation move(const Scope& s, const Variable& variable, Output direction, Output rate);

  LARSOptions options_;
  detail::WaitingParts waiting_;
};

/// Numbers of LAMBOptimizer.
struct LAMBOptions {
  Hyperparameter learning_rate = 0.001;
  Hyperparameter beta1 = 0.9;
  Hyperparameter beta2 = 0.999;
  Hyperparameter epsilon = 1e-6;
  Hyperparameter weight_decay = 0.01;
};

/// LAMB: m and w as Adam's, both corrected for their start at 0: m̂ = m / (1 − beta1ᵗ), ŵ = w / (1 − beta2ᵗ);
/// d = m̂ / (√ŵ + epsilon) + weight_decay · v; v −= learning_rate · ‖v‖ / ‖d‖ · d, a ratio of 1 where one of
/// the norms is 0. State as Adam's. Variables of at most one dimension (biases, scales of normalization) take
/// ratio 1 and no decay. Slices are taken as whole gradients. Made of ops: several passes over each variable.
/// Of parts of variables, of which each rank has one, it takes the norms over all ranks.
/// One thread at a time, as Optimizer.
class LAMBOptimizer : public AdamOptimizer {
 public:
  explicit LAMBOptimizer(LAMBOptions options = {});
  explicit LAMBOptimizer(Hyperparameter learning_rate)
      : LAMBOptimizer(LAMBOptions{.learning_rate = learning_rate}) {}

 protected:
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override;
  Operation finish(const Scope& s, const std::vector<Operation>& updates) override;

 private:
  Operation step(const Scope& s, Output direction, const Variable& variable, Output v_norm,
                 Output direction_norm);

  detail::WaitingParts waiting_;
  Hyperparameter weight_decay_;
};

}  // namespace kolo
