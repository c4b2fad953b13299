// LAMB, You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", ICLR 2020.
#pragma once

#include <vector>

#include <kolo/optimizer/adam.h>

namespace kolo {

struct LAMBOptions {
  Hyperparameter learning_rate = 0.001;
  Hyperparameter beta1 = 0.9;
  Hyperparameter beta2 = 0.999;
  Hyperparameter epsilon = 1e-6;
  Hyperparameter weight_decay = 0.01;
};

/// m and w as Adam's, both corrected for their start at 0: m̂ = m / (1 − beta1ᵗ), ŵ = w / (1 − beta2ᵗ);
/// d = m̂ / (√ŵ + epsilon) + weight_decay · v; v −= learning_rate · ‖v‖ / ‖d‖ · d, a ratio of 1 where one of
/// the norms is 0. State as Adam's. Variables of at most one dimension (biases, scales of normalization) take
/// ratio 1 and no decay. Slices are taken as whole gradients. Made of ops: several passes over each variable.
/// Of parts of variables, of which each rank has one, it takes the norms over all ranks.
class LAMBOptimizer : public AdamOptimizer {
 public:
  explicit LAMBOptimizer(LAMBOptions options = {});
  explicit LAMBOptimizer(Hyperparameter learning_rate)
      : LAMBOptimizer(LAMBOptions{.learning_rate = learning_rate}) {}

 protected:
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override;
  Operation finish(const Scope& s, const std::vector<Operation>& updates) override;

 private:
  // A part of a variable, which waits for the norms of all.
  struct Waiting {
    Scope scope;
    Output direction;
    Variable variable;
  };

  Operation step(const Scope& s, Output direction, const Variable& variable, Output v_norm,
                 Output direction_norm);

  std::vector<Waiting> waiting_;
  Hyperparameter weight_decay_;
};

}  // namespace kolo
