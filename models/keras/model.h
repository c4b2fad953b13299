// Layers put together: in a row (Sequential) or as a graph of calls (Model). A model is a layer, too.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <kolo/models/keras/compile.h>
#include <kolo/models/keras/core_layers.h>
#include <kolo/models/keras/data.h>
#include <kolo/models/keras/fit.h>
#include <kolo/models/keras/layer.h>

namespace kolo::keras {

namespace detail {
class ModelImpl;
}

/// Of a Model or Sequential.
struct ModelOptions {
  std::string name = {};
  bool trainable = true;
};

/// What Model::save writes.
struct SaveOptions {
  bool include_optimizer = true;  // what it is trained by, and the optimizer's state
};

/// How load_weights finds a layer's weights.
struct LoadWeightsOptions {
  bool by_name = false;        // of layers that the file has under their names; others stay
  bool skip_mismatch = false;  // by_name: layers of other shapes stay, with a warning
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

  /// Chooses what it is trained by and builds the training form; weights stay, an optimizer's state begins
  /// anew. Throws InvalidArgumentError `Unknown entry in loss dictionary: "<n>". Only expected the following
  /// keys: <names>`, `When passing a list as loss, it should have one entry per model outputs.`, `The model
  /// cannot be compiled because it has no loss to optimize.`
  void compile(const CompileOptions& options) const;
  /// loss, the outputs' losses where there are several, then metrics output by output. This and what follows
  /// throw FailedPreconditionError `You must compile a model before training/testing. Use
  /// `model.compile(optimizer, loss)`.`
  std::vector<std::string> metrics_names() const;
  const Optimizer& optimizer() const;

  /// One update; loss and metrics from before it, as metrics_names. Throws InvalidArgumentError for data that
  /// do not fit: `Error when checking input: …`, `Error when checking target: …`, `Input arrays should have
  /// the same number of samples as target arrays. …`
  std::vector<double> train_on_batch(const Arrays& x, const Arrays& y,
                                     const Arrays& sample_weight = {}) const;
  std::vector<double> test_on_batch(const Arrays& x, const Arrays& y, const Arrays& sample_weight = {}) const;
  /// One tensor for each output. Needs no compile.
  std::vector<Tensor> predict_on_batch(const Arrays& x) const;

  /// Trains for the epochs from initial_epoch to `epochs`; see FitOptions. Weights are those of the last
  /// finished batch when it throws. Throws as train_on_batch, and what the fields of FitOptions say.
  ///
  /// With a distributed() optimizer ranks stop together: after the batch that begins behind a wish of any of
  /// them, or at an epoch's end. A source that ends on one rank ends the training of all, and the step that
  /// the others were in is applied nowhere; where a rank throws, the others end in AbortedError. Throws
  /// FailedPreconditionError `Ranks disagree on the steps of an epoch: <a> on rank 0 but <b> on rank <r>`.
  History fit(const Arrays& x, const Arrays& y, const FitOptions& options = {}) const;
  /// Epochs of steps_per_epoch batches, each where the one before has ended. At the source's end it warns
  /// `Your dataset ran out of data` and stops. Throws InvalidArgumentError `you should specify the
  /// `steps_per_epoch` argument`, and for what goes with arrays alone: validation_split, class_weight,
  /// sample_weight, shard.
  History fit(Source& source, const FitOptions& options = {}) const;
  History fit(models::BatchSource& batches, const FitOptions& options = {}) const;
  /// Loss and metrics over all samples, as metrics_names. Throws as test_on_batch.
  std::vector<double> evaluate(const Arrays& x, const Arrays& y, const EvaluateOptions& options = {}) const;
  std::vector<double> evaluate(const Samples& samples, const EvaluateOptions& options = {}) const;
  std::vector<double> evaluate(Source& source, const EvaluateOptions& options = {}) const;
  /// Rows in the order of the samples, one tensor for each output. Needs no compile.
  std::vector<Tensor> predict(const Arrays& x, const PredictOptions& options = {}) const;
  std::vector<Tensor> predict(Source& source, const PredictOptions& options = {}) const;
  /// Asked for in a callback, fit ends after the batch, and the epoch's end is still told. False when fit
  /// starts.
  void set_stop_training(bool stop) const;
  bool stop_training() const;

  /// Writes <path>.safetensors and, last, <path>.json, each whole or not at all; a suffix of these is dropped
  /// from `path`. load_model (saving.h) reads them. Throws UnimplementedError for .h5 and .hdf5, and what
  /// cannot be written.
  void save(const std::string& path, const SaveOptions& options = {}) const;
  /// The same two files, the JSON with "weights" alone.
  void save_weights(const std::string& path) const;
  /// From either. Throws InvalidArgumentError `You are trying to load a weight file containing <a> layers
  /// into a model with <b> layers.`, `Layer #<k> (named "<l>") expects …`, `Layer #<k> (named "<l>"), weight
  /// <w> has shape <s>, but the saved weight has shape <t>.`; NotFoundError without the files, DataLossError
  /// for damage. Nothing is changed then.
  void load_weights(const std::string& path, const LoadWeightsOptions& options = {}) const;

  detail::ModelImpl& model() const;
  explicit Model(std::shared_ptr<detail::LayerImpl> impl) : Layer(std::move(impl)) {}
};

/// One layer behind the other. Without an input_shape of the first it is built at the first data. One thread
/// at a time, as a Model.
class Sequential : public Model {
 public:
  explicit Sequential(Workspace& workspace, const std::vector<Layer>& layers = {},
                      const ModelOptions& options = {});

  /// Throws InvalidArgumentError `All layers in a Sequential model should have a single output tensor.`, and
  /// for a name that is taken in the model.
  void add(const Layer& layer) const;
  /// Takes the last layer away. Throws InvalidArgumentError `There are no layers in the model.`
  void pop() const;
  /// i64 [N]: the class of the largest prediction; of a single unit whether it is above .5.
  Tensor predict_classes(const Arrays& x, const PredictOptions& options = {}) const;
};

/// What a file names and does not hold.
struct CustomObjects {
  std::map<std::string, LambdaFunction> functions = {};  // of Lambda layers
  std::map<std::string, LossFunction> losses = {};       // losses and metrics of one's own
  /// Makes a layer of its config (JSON).
  std::map<std::string, std::function<Layer(const std::string& config)>> layers = {};
};

/// A model of these layers with first weights: from to_json, or from a JSON of Keras 2.2. Throws
/// InvalidArgumentError `Unknown layer: <class>`, and for what is no such JSON.
Model model_from_json(Workspace& workspace, const std::string& json, const CustomObjects& custom = {});

/// What load_model cannot find in a file: functions and optimizers of your own.
struct LoadModelOptions {
  CustomObjects custom = {};
  std::optional<Optimizer> optimizer = {};  // of one that the file cannot name: a kolo::Optimizer
  std::optional<DistributedOptimizerOptions> distributed = {};  // wraps the optimizer of the file
};

/// What Model::save wrote: the same predictions and, without dropout, the same next training step, bit for
/// bit. It comes uncompiled where the file was written without optimizer, and, with a warning, where the
/// optimizer was one of kolo's and none is given. Throws NotFoundError without the files, DataLossError for
/// damage, and as model_from_json.
Model load_model(Workspace& workspace, const std::string& path, const LoadModelOptions& options = {});

}  // namespace kolo::keras
