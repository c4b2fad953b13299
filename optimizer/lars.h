// LARS, You, Gitman and Ginsburg, "Large batch training of convolutional networks", arXiv:1708.03888.
#pragma once

#include <vector>

#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

struct LARSOptions {
  Hyperparameter learning_rate = 0.001;
  Hyperparameter momentum = 0.9;
  Hyperparameter weight_decay = 1e-4;        // L2
  Hyperparameter trust_coefficient = 0.001;  // "eta"
};

/// d = gradient + weight_decay · v; ratio = trust_coefficient · ‖v‖ / (‖gradient‖ + weight_decay · ‖v‖), 1
/// where one of them is 0; a = momentum · a + learning_rate · ratio · d; v −= a. Slot: "momentum". Variables
/// of at most one dimension (biases, scales of normalization) take ratio 1 and no decay, as in MLPerf's
/// reference. Slices are taken as whole gradients. Made of ops: several passes over each variable, unlike the
/// other rules.
/// Of parts of variables, of which each rank has one, it takes the norms over all ranks.
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
  // A part of a variable, which waits for the norms of all.
  struct Waiting {
    Scope scope;
    Output gradient;
    Variable variable;
  };

  Operation step(const Scope& s, Output gradient, const Variable& variable, Output v_norm,
                 Output gradient_norm);
  Operation move(const Scope& s, const Variable& variable, Output direction, Output rate);

  LARSOptions options_;
  std::vector<Waiting> waiting_;
};

}  // namespace kolo
