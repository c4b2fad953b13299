// Layers that shift and scale their input to mean 0 and variance 1.
#pragma once

#include <optional>
#include <string>

#include <kolo/models/keras/layer.h>

namespace kolo::keras {

/// As Keras' BatchNormalization takes them.
struct BatchNormalizationOptions {
  std::optional<int> axis = {};  // none: the channels'
  double momentum = 0.99;        // share of its old value that a moving average keeps
  double epsilon = 1e-3;
  bool center = true;  // beta
  bool scale = true;   // gamma
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Initializer moving_mean_initializer = "zeros";
  Initializer moving_variance_initializer = "ones";
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  std::string name = {};
  bool trainable = true;
  Shape input_shape = Shape::unknown_rank();
  std::string dtype = {};
};
/// By the batch in training, by the moving averages in inference and where it is frozen. Weights: gamma,
/// beta, moving_mean, moving_variance; the last two are not trained. The moving variance is the sample
/// variance's.
class BatchNormalization : public Layer {
 public:
  explicit BatchNormalization(BatchNormalizationOptions options = {});
};

/// As Keras' LayerNormalization takes them.
struct LayerNormalizationOptions {
  double epsilon = 1e-5;
  std::string name = {};
  bool trainable = true;
  Shape input_shape = Shape::unknown_rank();
  std::string dtype = {};
};
/// Each sample along its last axis. Weights: gamma, beta.
class LayerNormalization : public Layer {
 public:
  explicit LayerNormalization(const LayerNormalizationOptions& options = {});
};

}  // namespace kolo::keras
