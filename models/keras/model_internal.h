// What is behind a model: its layers and their calls in order.
#pragma once

#include <string>
#include <vector>

#include <kolo/models/keras/layer_internal.h>
#include <kolo/models/keras/model.h>

namespace kolo::keras::detail {

class Trainer;
class Predictor;
struct FitProgress;

/// One call of a layer that belongs to a model.
struct ModelCall {
  LayerImpl* layer;
  int call;
  int depth = 0;  // calls between it and the furthest output
};

class ModelImpl : public LayerImpl {
 public:
  ModelImpl(const std::vector<KerasTensor>& inputs, const std::vector<KerasTensor>& outputs,
            const ModelOptions& options);
  /// Sequential, not built.
  explicit ModelImpl(const ModelOptions& options);

  /// Throws FailedPreconditionError where it is not compiled.
  Trainer& trainer();
  bool is_compiled() const { return trainer_ != nullptr || pending_.has_value(); }
  void compile(const CompileOptions& options);
  Predictor& predictor();
  /// Of the fit under way; null outside of one.
  FitProgress* fit_progress() const { return fit_progress_; }
  void set_fit_progress(FitProgress* progress) { fit_progress_ = progress; }
  bool stop_training() const { return stop_training_; }
  void set_stop_training(bool stop) { stop_training_ = stop; }
  /// Its nodes once more, for other inputs: each call where it was made, or all on the context's device.
  Outputs form(const CallContext& around, const Outputs& inputs);
  /// Made by multi_gpu_model of this template, its results joined on `merge_device`.
  void set_replicated(ModelImpl& of, std::string merge_device);
  /// What files hold: the template of replicas, else itself.
  ModelImpl& template_model() { return template_ == nullptr ? *this : *template_; }
  /// Where loss and metrics are computed; "": anywhere.
  const std::string& merge_device() const { return merge_device_; }
  /// Where some of its nodes were told to go: their gradients go with them.
  bool is_placed() const { return template_ != nullptr || !context_.empty(); }
  /// It has to be compiled again.
  void forget_compiled();
  /// Builds a Sequential that waits for its first data.
  void build_from(const Arrays& x);

  bool is_sequential() const { return sequential_; }
  const std::vector<LayerImpl*>& layers() const { return layers_; }
  const std::vector<KerasTensor>& inputs() const { return inputs_; }
  const std::vector<KerasTensor>& outputs() const { return outputs_; }
  /// Behind one another; none before the calls whose results they take.
  const std::vector<ModelCall>& model_calls() const { return calls_in_order_; }

  void add(const Layer& layer);
  void pop();
  /// Of a Sequential whose first layer knows no shape: for samples of this shape.
  void build_for(const Shape& sample);

  std::vector<const Weight*> weights() const override;
  std::vector<const Weight*> trainable_weights(bool frozen = false) const override;
  std::vector<LayerImpl*> leaves() override;
  Json full_config() const override;
  DType input_dtype() const override;
  void require_built() const override;
  /// Number by which files and texts call `tensor`'s call: of its layer's calls those in this model.
  int call_in_model(const KerasTensor& tensor) const;

 protected:
  void build(const std::vector<Shape>& inputs) override;
  Outputs compute(const CallContext& c, const Outputs& inputs) override;

 private:
  Outputs run_calls(const CallContext& c, const Outputs& inputs, bool at_their_places);
  void take_context(const std::vector<Context>& context);
  void connect(const std::vector<KerasTensor>& inputs, const std::vector<KerasTensor>& outputs);
  void order_calls();
  void order_layers();
  void check_names() const;
  KerasTensor extended(LayerImpl& layer);
  Json functional_config() const;

  bool sequential_ = false;
  std::vector<LayerImpl*> layers_;
  std::vector<KerasTensor> inputs_, outputs_;
  std::vector<ModelCall> calls_in_order_;
  std::shared_ptr<Trainer> trainer_;
  std::optional<CompileOptions> pending_;  // of a model that is not built yet
  std::shared_ptr<Predictor> predictor_;
  ModelImpl* template_ = nullptr;  // a layer of this model
  std::string merge_device_;
  std::string context_;            // the one device that it runs on
  ModelImpl* parallel_ = nullptr;  // of several contexts: what runs in its place
  FitProgress* fit_progress_ = nullptr;
  bool stop_training_ = false;
};

/// Names of its outputs' layers, each there once: `name_1` where one repeats.
std::vector<std::string> unique_output_names(const ModelImpl& model);
/// `base`, or the first of base_1, base_2, … that is none of the names.
std::string unique_among(const std::vector<std::string>& names, const std::string& base);

/// The class of a saved model: "Sequential" or "Model".
Layer layer_from_config(Workspace& workspace, const Json& object, const CustomObjects& custom);

}  // namespace kolo::keras::detail
