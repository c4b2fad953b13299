// Layers of one's own, with weights: what Keras' users derive from Layer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kolo/models/keras/core_layers.h>
#include <kolo/models/keras/layer.h>
#include <kolo/models/keras/weights.h>

namespace kolo::keras {
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
