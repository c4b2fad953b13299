// Layers put together: in a row (Sequential) or as a graph of calls (Model). A model is a layer, too.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <kolo/models/keras/core_layers.h>
#include <kolo/models/keras/layer.h>

namespace kolo::keras {

namespace detail {
class ModelImpl;
}

struct ModelOptions {
  std::string name = {};
  bool trainable = true;
};

/// A handle by value, as Layer.
class Model : public Layer {
 public:
  /// From what `Input` made to what calls of layers made of it; layers on the way are the model's. Throws
  /// InvalidArgumentError `Graph disconnected: cannot obtain value for tensor <t> at layer "<l>".`, `The list
  /// of inputs passed to the model is redundant.`, `The name "<n>" is used <k> times in the model. All layer
  /// names should be unique.`
  Model(const std::vector<KerasTensor>& inputs, const std::vector<KerasTensor>& outputs,
        const ModelOptions& options = {});
  Model(const KerasTensor& input, const KerasTensor& output, const ModelOptions& options = {})
      : Model(std::vector{input}, std::vector{output}, options) {}

  /// By depth, inputs first, then in the order of creation. Of a Sequential: as they were added, without the
  /// input.
  std::vector<Layer> layers() const;
  /// Throws InvalidArgumentError `No such layer: <n>`, `Was asked to retrieve layer at index <i> but model
  /// only has <k> layers.`
  Layer get_layer(const std::string& name) const;
  Layer get_layer(int index) const;
  /// Throw InvalidArgumentError `This model has not yet been built.`
  std::vector<KerasTensor> inputs() const;
  std::vector<KerasTensor> outputs() const;
  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;

  /// The table that Keras prints, lines ending in \n. Throws InvalidArgumentError `This model has not yet
  /// been built.`
  std::string summary() const;
  /// {"class_name", "config", "keras_version", "backend": "kolo"}. Throws InvalidArgumentError for a Lambda
  /// whose function has no name.
  std::string to_json() const;

  detail::ModelImpl& model() const;
  explicit Model(std::shared_ptr<detail::LayerImpl> impl) : Layer(std::move(impl)) {}
};

/// One layer behind the other. Without an input_shape of the first it is built at the first data.
class Sequential : public Model {
 public:
  explicit Sequential(Workspace& workspace, const std::vector<Layer>& layers = {},
                      const ModelOptions& options = {});

  /// Throws InvalidArgumentError `All layers in a Sequential model should have a single output tensor.`, and
  /// for a name that is taken in the model.
  void add(const Layer& layer) const;
  /// Takes the last layer away. Throws InvalidArgumentError `There are no layers in the model.`
  void pop() const;
};

/// What a file names and does not hold.
struct CustomObjects {
  std::map<std::string, LambdaFunction> functions = {};  // of Lambda layers
  /// Makes a layer of its config (JSON).
  std::map<std::string, std::function<Layer(const std::string& config)>> layers = {};
};

/// A model of these layers with first weights: from to_json, or from a JSON of Keras 2.2. Throws
/// InvalidArgumentError `Unknown layer: <class>`, and for what is no such JSON.
Model model_from_json(Workspace& workspace, const std::string& json, const CustomObjects& custom = {});

}  // namespace kolo::keras
