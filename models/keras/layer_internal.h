// What is behind the handles: layers, their calls, and what one building of a model keeps of them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/core/base/source_line.h>
#include <kolo/core/ops/variables.h>
#include <kolo/models/keras/layer.h>
#include <kolo/models/keras/names_internal.h>

namespace kolo::keras {

// As Keras' files have them. Names alone are read, too.
void to_json(nlohmann::ordered_json& json, const Initializer& initializer);
void to_json(nlohmann::ordered_json& json, const Regularizer& regularizer);
void to_json(nlohmann::ordered_json& json, const Constraint& constraint);
void to_json(nlohmann::ordered_json& json, const Pair& pair);
void from_json(const nlohmann::ordered_json& json, Initializer& initializer);
void from_json(const nlohmann::ordered_json& json, Regularizer& regularizer);
void from_json(const nlohmann::ordered_json& json, Constraint& constraint);
void from_json(const nlohmann::ordered_json& json, Pair& pair);

}  // namespace kolo::keras

namespace kolo::keras::detail {

using Json = nlohmann::ordered_json;

struct Weight {
  std::string name;  // "kernel"
  Variable variable;
  bool trainable = true;
  Regularizer regularizer = {};
  Constraint constraint = {};
  std::vector<std::int64_t> norm_axes = {};
  std::string full_name = {};  // "dense_1/kernel", whatever the graph calls the variable
};

/// What a building of a model's training form leaves for compile.
struct BuildRecord {
  Outputs penalties;                                          // of activity regularizers
  std::vector<std::pair<Variable, Outputs>> moving_averages;  // each with the new value of every call

  void add_average(const Variable& variable, Output next);
};

struct CallContext {
  Scope scope;
  bool frozen = false;            // it or a model around it is not trainable
  BuildRecord* record = nullptr;  // none where a model is put together
};

struct CallRecord {
  std::vector<KerasTensor> inputs;
  Outputs outputs;
  std::vector<std::string> devices = {};  // that the workspace's scopes asked for, innermost last
  std::string name_scope = {};
};

/// `s` where the call was made.
Scope at_place_of(const Scope& s, const CallRecord& call);

/// While it lives, what is called in the workspace is a replica's: on its device, under its name scope.
class ReplicaPlace {
 public:
  ReplicaPlace(Workspace& workspace, const std::string& device, std::string name_scope);
  ~ReplicaPlace();
  ReplicaPlace(const ReplicaPlace&) = delete;
  ReplicaPlace& operator=(const ReplicaPlace&) = delete;

 private:
  Workspace& workspace_;
  Workspace::DeviceScope device_;
};

/// Arguments that all layers have.
struct CommonOptions {
  std::string name;
  bool trainable = true;
  Shape input_shape = Shape::unknown_rank();
  std::string dtype = "float32";
};

class LayerImpl : public std::enable_shared_from_this<LayerImpl> {
 public:
  LayerImpl(std::string class_name, CommonOptions common)
      : class_name_(std::move(class_name)), common_(std::move(common)) {}
  virtual ~LayerImpl() = default;
  LayerImpl(const LayerImpl&) = delete;
  LayerImpl& operator=(const LayerImpl&) = delete;

  const std::string& class_name() const { return class_name_; }
  const std::string& name() const { return common_.name; }
  const CommonOptions& common() const { return common_; }
  bool trainable() const { return common_.trainable; }
  void set_trainable(bool trainable) { common_.trainable = trainable; }
  Workspace& workspace() const { return *workspace_; }
  bool has_joined() const { return workspace_ != nullptr; }
  bool is_built() const { return built_; }
  const std::vector<CallRecord>& calls() const { return calls_; }
  /// Of two layers of a workspace the one that joined first has the smaller one.
  std::size_t creation() const { return creation_; }

  /// Takes a name and stays in this workspace. Throws InvalidArgumentError if it is in another one.
  void join(Workspace& workspace);
  /// Names and builds it where that is new, makes its nodes and notes the call.
  std::vector<KerasTensor> call(const std::vector<KerasTensor>& inputs);
  /// Its nodes once more, for other inputs; the call is not noted.
  Outputs apply(const CallContext& around, const Outputs& inputs);
  std::vector<KerasTensor> results_of(int call);
  /// A call whose result is there: that of an input.
  KerasTensor note_source(Output output);
  /// Its weights become new variables, where the workspace's device scope says, with the old ones' values.
  /// Nodes that were made keep the old ones.
  void renew_weights();
  /// All that have joined it, in order.
  static const std::vector<std::shared_ptr<LayerImpl>>& layers_of(const Workspace& workspace) {
    return workspace.layers_;
  }

  /// Weights in the table's order. All of them are frozen where `frozen`.
  virtual std::vector<const Weight*> weights() const;
  virtual std::vector<const Weight*> trainable_weights(bool frozen = false) const;
  /// Layers in it that have weights of their own, itself where it is no model.
  virtual std::vector<LayerImpl*> leaves() { return {this}; }
  /// Arguments behind name, trainable and dtype.
  virtual Json config() const { return Json::object(); }
  /// The whole config, as JSON files have it.
  virtual Json full_config() const;
  virtual DType input_dtype() const { return DType::f32; }
  virtual Regularizer activity_regularizer() const { return {}; }
  virtual void require_built() const;

 protected:
  /// Makes the weights for inputs of these shapes.
  virtual void build(const std::vector<Shape>& /*inputs*/) {}
  virtual Outputs compute(const CallContext& c, const Outputs& inputs) = 0;

  struct WeightOptions {
    Fans fans = {1, 1};
    Regularizer regularizer = {};
    Constraint constraint = {};
    std::vector<std::int64_t> norm_axes = {};
    bool trainable = true;
  };
  Variable add_weight(const std::string& name, const Shape& shape, const Initializer& initializer,
                      const WeightOptions& options);
  std::vector<Weight> own_weights_;
  bool built_ = false;

 private:
  friend class ::kolo::keras::Layer;
  std::string class_name_;
  CommonOptions common_;
  Workspace* workspace_ = nullptr;
  std::size_t creation_ = 0;
  std::vector<CallRecord> calls_;
};

/// The input of a model.
class InputLayer final : public LayerImpl {
 public:
  InputLayer(const Shape& shape, DType dtype, std::string name);
  Json full_config() const override;
  DType input_dtype() const override { return dtype_; }
  Shape batch_shape() const;

 protected:
  Outputs compute(const CallContext& c, const Outputs& inputs) override;

 private:
  DType dtype_;
};
KerasTensor make_input(Workspace& workspace, const Shape& shape, DType dtype, const std::string& name);

template <typename Options>
CommonOptions common_of(const Options& options) {
  return {.name = options.name,
          .trainable = options.trainable,
          .input_shape = options.input_shape,
          .dtype = options.dtype.empty() ? "float32" : options.dtype};
}

/// "relu" and so on, "" and "linear" as they are. Throws InvalidArgumentError `Unknown activation function`.
Output activate(const Scope& s, const std::string& name, Output x, int softmax_axis = -1);
void check_activation(const std::string& name);
/// "linear" for "".
std::string activation_name(const std::string& name);

/// A layer of a config; custom ones are the caller's.
using LayerFromConfig = Layer (*)(const Json& config);
struct RegisterLayer {
  RegisterLayer(const char* class_name, LayerFromConfig make, SourceLine place = SourceLine::here());
};
/// nullptr if there is none.
LayerFromConfig find_layer_class(const std::string& class_name);

Json to_config(const Shape& shape);
/// The value behind `key`; `otherwise` where there is none, or null.
template <typename T>
T value_from(const Json& config, const char* key, T otherwise) {
  const auto found = config.find(key);
  if (found != config.end() && !found->is_null()) found->get_to(otherwise);
  return otherwise;
}

/// An options struct names its fields once, for a visitor of keys and members: one that writes a config, or
/// one that reads it. What a config does not have, or has as null, keeps its value.
struct WriteField {
  Json& config;
  template <typename T>
  void operator()(const std::string& key, const T& field) const {
    config[key] = field;
  }
};
struct ReadField {
  const Json& config;
  template <typename T>
  void operator()(const std::string& key, T& field) const {
    field = value_from(config, key.c_str(), std::move(field));
  }
};

/// name, trainable, input_shape and dtype of `config`.
template <typename Options>
Options with_common(const Json& config, Options options) {
  options.name = value_from<std::string>(config, "name", "");
  options.trainable = value_from(config, "trainable", true);
  options.dtype = value_from<std::string>(config, "dtype", "");
  if (const auto shape = config.find("batch_input_shape"); shape != config.end() && !shape->is_null()) {
    std::vector<std::int64_t> dims;
    for (std::size_t i = 1; i < shape->size(); ++i)
      dims.push_back((*shape)[i].is_null() ? -1 : (*shape)[i].template get<std::int64_t>());
    options.input_shape = Shape(dims);
  }
  return options;
}

}  // namespace kolo::keras::detail
