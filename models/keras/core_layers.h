// Layers of every network: products, shapes, activations, dropout, embeddings. Arguments, defaults and the
// order of fields are Keras'. All constructors throw InvalidArgumentError for unknown names and numbers out
// of range.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <kolo/models/keras/layer.h>

namespace kolo::keras {

/// As Keras' Dense takes them, in this order.
struct DenseOptions {
  std::string activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  bool trainable = true;
  Shape input_shape = Shape::unknown_rank();
  std::string dtype = {};
};
/// (…, in) → (…, units): activation(x · kernel + bias) along the last axis. Weights: kernel [in, units],
/// bias.
class Dense : public Layer {
 public:
  explicit Dense(std::int64_t units, DenseOptions options = {});
};

/// All but the batch as one dimension, as the data lie.
class Flatten : public Layer {
 public:
  explicit Flatten(const LayerOptions& options = {});
};

/// To `target`, of which one may be −1.
class Reshape : public Layer {
 public:
  explicit Reshape(const Shape& target, const LayerOptions& options = {});
};

/// Dimension i of the result is dimension dims[i] of the input; 1 is the first behind the batch.
class Permute : public Layer {
 public:
  explicit Permute(std::vector<std::int64_t> dims, const LayerOptions& options = {});
};

/// (features) → (n, features).
class RepeatVector : public Layer {
 public:
  explicit RepeatVector(std::int64_t n, const LayerOptions& options = {});
};

/// linear relu sigmoid tanh softmax elu selu softplus softsign exponential hard_sigmoid.
class Activation : public Layer {
 public:
  explicit Activation(const std::string& activation, const LayerOptions& options = {});
};

/// The softmax along one axis.
class Softmax : public Layer {
 public:
  explicit Softmax(int axis = -1, const LayerOptions& options = {});
};

/// As Keras' ReLU takes them.
struct ReLUOptions {
  double max_value = -1;  // none where negative
  double negative_slope = 0;
  double threshold = 0;
  std::string name = {};
  bool trainable = true;
  Shape input_shape = Shape::unknown_rank();
  std::string dtype = {};
};
/// min(x, max_value) from threshold on, negative_slope · (x − threshold) below it.
class ReLU : public Layer {
 public:
  explicit ReLU(const ReLUOptions& options = {});
};

/// x where x > 0, else alpha · x.
class LeakyReLU : public Layer {
 public:
  explicit LeakyReLU(double alpha = 0.3, const LayerOptions& options = {});
};

/// x where x > 0, else alpha · (eˣ − 1).
class ELU : public Layer {
 public:
  explicit ELU(double alpha = 1, const LayerOptions& options = {});
};

/// x where x > 0, else alpha · x. Weights: alpha, from 0, of the input's shape.
class PReLU : public Layer {
 public:
  explicit PReLU(const LayerOptions& options = {});
};

/// In training each element is 0 with probability `rate`, else x / (1 − rate); ranks draw different masks.
class Dropout : public Layer {
 public:
  explicit Dropout(double rate, const LayerOptions& options = {});
};

/// In training x + noise, normal of mean 0 and `stddev`; ranks draw different noise.
class GaussianNoise : public Layer {
 public:
  explicit GaussianNoise(double stddev, const LayerOptions& options = {});
};

/// In training x times noise, normal of mean 1 and standard deviation √(rate / (1 − rate)).
class GaussianDropout : public Layer {
 public:
  explicit GaussianDropout(double rate, const LayerOptions& options = {});
};

/// As Keras' Embedding takes them.
struct EmbeddingOptions {
  Initializer embeddings_initializer = "uniform";
  Regularizer embeddings_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint embeddings_constraint = {};
  std::string name = {};
  bool trainable = true;
  Shape input_shape = Shape::unknown_rank();
  std::string dtype = {};  // "int32"
};
/// Whole numbers below input_dim → one axis more, of output_dim. Weights: embeddings [input_dim, output_dim];
/// their gradient is rows.
class Embedding : public Layer {
 public:
  Embedding(std::int64_t input_dim, std::int64_t output_dim, const EmbeddingOptions& options = {});
};

/// Builds nodes; the batch is dimension 0 of each input and of the result.
using LambdaFunction = std::function<Output(const Scope& s, const Outputs& inputs)>;
/// Without weights: throws InvalidArgumentError at a function that makes a variable (OwnLayer is for
/// layers with weights). `function_name`: what files call it; load_model finds the function under it.
class Lambda : public Layer {
 public:
  explicit Lambda(LambdaFunction function, std::string function_name = {}, const LayerOptions& options = {});
};

namespace detail {
class OwnLayerImpl;
}

/// What add_weight is told beside the shape.
struct OwnWeightOptions {
  Initializer initializer = "glorot_uniform";
  Regularizer regularizer = {};
  Constraint constraint = {};
  bool trainable = true;
};

/// Derive from it, and hand it to own_layer(). Its weights are counted, saved, loaded and trained as those of
/// kolo's layers. One thread.
class OwnLayer {
 public:
  virtual ~OwnLayer() = default;

 protected:
  /// Makes the weights, before the first call. inputs: their shapes, with the batch first, -1. Once more
  /// where the weights move to another device; what add_weight gave before is then without use.
  virtual void build(const std::vector<Shape>& /*inputs*/) {}
  /// Builds the nodes of a call; the batch is dimension 0 of each input and result. Throws kolo's errors for
  /// inputs that do not fit.
  virtual Outputs compute(const Scope& s, const Outputs& inputs) = 0;
  /// A JSON object of the arguments that another one is made from.
  virtual std::string config() const { return "{}"; }

  /// In build(): f32, named "<layer>/<name>". Throws InvalidArgumentError for a shape that is not fully known
  /// and for a name that the layer has.
  Variable add_weight(const std::string& name, const Shape& shape, const OwnWeightOptions& options = {});

 private:
  friend class detail::OwnLayerImpl;
  detail::OwnLayerImpl* impl_ = nullptr;
};

/// class_name: what JSON calls it, and `names` begin with. Each call of own_layer takes an object of its own:
/// throws InvalidArgumentError for one that is a layer's already.
Layer own_layer(const std::string& class_name, std::shared_ptr<OwnLayer> layer,
                const LayerOptions& options = {});
/// For a function of CustomObjects::layers: name, trainable and input_shape as `config` has them. Throws
/// InvalidArgumentError for what is no JSON object.
LayerOptions layer_options_from(const std::string& config);

}  // namespace kolo::keras
