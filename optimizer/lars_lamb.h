// LARS, You, Gitman and Ginsburg, "Large batch training of convolutional networks", arXiv:1708.03888, and
// LAMB, You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", ICLR 2020: the
// step of a layer is measured by the length of its weights.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kolo/optimizer/adam.h>
#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

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
