#include <kolo/models/keras/model.h>

#include <algorithm>
#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/models/keras/model_internal.h>

namespace kolo::keras {
namespace detail {
namespace {

// Results of calls by where they come from.
using TensorSource = std::tuple<const LayerImpl*, int, int>;
TensorSource source_of(const KerasTensor& tensor) { return {tensor.layer(), tensor.call(), tensor.index()}; }

void check_inputs(const std::vector<KerasTensor>& inputs, const std::vector<KerasTensor>& outputs) {
  if (inputs.empty() || outputs.empty())
    throw InvalidArgumentError("a model has at least one input and one output; it got {} and {}",
                               inputs.size(), outputs.size());
  std::set<TensorSource> seen;
  for (const KerasTensor& input : inputs) {
    if (dynamic_cast<const InputLayer*>(input.layer()) == nullptr)
      throw InvalidArgumentError("Input tensors to a Model must come from `keras::Input`. Received: {}",
                                 input.name());
    if (!seen.insert(source_of(input)).second)
      throw InvalidArgumentError(
          "The list of inputs passed to the model is redundant. All inputs should only appear once. Found: "
          "{}",
          input.name());
  }
}

}  // namespace

ModelImpl::ModelImpl(const std::vector<KerasTensor>& inputs, const std::vector<KerasTensor>& outputs,
                     const ModelOptions& options)
    : LayerImpl("Model", {.name = options.name, .trainable = options.trainable}) {
  connect(inputs, outputs);
}

ModelImpl::ModelImpl(const ModelOptions& options)
    : LayerImpl("Sequential", {.name = options.name, .trainable = options.trainable}), sequential_(true) {}

void ModelImpl::connect(const std::vector<KerasTensor>& inputs, const std::vector<KerasTensor>& outputs) {
  check_inputs(inputs, outputs);
  inputs_ = inputs;
  outputs_ = outputs;
  order_calls();
  if (!sequential_) order_layers();
  check_names();
  built_ = true;
  predictor_.reset();
}

// Depth first from the outputs, so that no call stands before those whose results it takes.
void ModelImpl::order_calls() {
  calls_in_order_.clear();
  std::set<std::pair<const LayerImpl*, int>> done;
  std::set<TensorSource> fed;
  for (const KerasTensor& input : inputs_) fed.insert(source_of(input));
  const auto visit = [&](const auto& again, const KerasTensor& tensor, const LayerImpl& user) -> void {
    if (!done.insert({tensor.layer(), tensor.call()}).second) return;
    const CallRecord& call = tensor.layer()->calls().at(static_cast<std::size_t>(tensor.call()));
    if (call.inputs.empty() && fed.count(source_of(tensor)) == 0)
      throw InvalidArgumentError("Graph disconnected: cannot obtain value for tensor {} at layer \"{}\".",
                                 tensor.name(), user.name());
    for (const KerasTensor& input : call.inputs) again(again, input, *tensor.layer());
    calls_in_order_.push_back({.layer = tensor.layer(), .call = tensor.call()});
  };
  for (const KerasTensor& input : inputs_) visit(visit, input, *input.layer());
  for (const KerasTensor& output : outputs_) visit(visit, output, *output.layer());
  for (std::size_t i = calls_in_order_.size(); i-- > 0;) {
    const ModelCall& user = calls_in_order_[i];
    for (const KerasTensor& input : user.layer->calls()[static_cast<std::size_t>(user.call)].inputs)
      for (ModelCall& before : calls_in_order_)
        if (before.layer == input.layer() && before.call == input.call())
          before.depth = std::max(before.depth, user.depth + 1);
  }
}

void ModelImpl::order_layers() {
  std::map<LayerImpl*, int> depths;
  for (const ModelCall& call : calls_in_order_) {
    int& depth = depths.try_emplace(call.layer, 0).first->second;
    depth = std::max(depth, call.depth);
  }
  layers_.clear();
  for (const auto& [layer, depth] : depths) layers_.push_back(layer);
  const auto place = [&](const LayerImpl* layer) {
    const bool is_input = dynamic_cast<const InputLayer*>(layer) != nullptr;
    return std::tuple(-depths.at(const_cast<LayerImpl*>(layer)), !is_input, layer->creation());
  };
  std::sort(layers_.begin(), layers_.end(),
            [&](const LayerImpl* a, const LayerImpl* b) { return place(a) < place(b); });
}

void ModelImpl::check_names() const {
  std::map<std::string, int> uses;
  for (const LayerImpl* layer : layers_) ++uses[layer->name()];
  for (const auto& [name, count] : uses)
    if (count > 1)
      throw InvalidArgumentError(
          "The name \"{}\" is used {} times in the model. All layer names should be unique.", name, count);
}

// The result of `layer` behind the last one.
KerasTensor ModelImpl::extended(LayerImpl& layer) {
  const std::vector<KerasTensor> results = layer.call({outputs_.front()});
  if (results.size() != 1)
    throw InvalidArgumentError("All layers in a Sequential model should have a single output tensor.");
  return results.front();
}

void ModelImpl::add(const Layer& layer) {
  LayerImpl& added = layer.impl();
  added.join(workspace());
  layers_.push_back(&added);
  try {
    check_names();
    if (!outputs_.empty()) {
      connect(inputs_, {extended(added)});
    } else if (const auto* model = dynamic_cast<const ModelImpl*>(&added);
               model != nullptr && added.is_built()) {
      if (layers_.size() == 1) build({model->inputs().at(0).shape()});
    } else if (layers_.size() == 1 && added.common().input_shape.has_rank()) {
      build_for(added.common().input_shape);
    }
  } catch (...) {
    layers_.pop_back();
    throw;
  }
}

void ModelImpl::pop() {
  if (layers_.empty()) throw InvalidArgumentError("There are no layers in the model.");
  layers_.pop_back();
  if (outputs_.empty()) return;
  if (layers_.empty()) {
    inputs_.clear();
    outputs_.clear();
    calls_in_order_.clear();
    built_ = false;
    return;
  }
  const LayerImpl* before = outputs_.front().layer();
  const KerasTensor last = before->calls()[static_cast<std::size_t>(outputs_.front().call())].inputs.front();
  connect(inputs_, {last});
}

void ModelImpl::build(const std::vector<Shape>& inputs) {
  const auto& dims = inputs.at(0).dims();
  build_for(Shape(std::vector<std::int64_t>(dims.begin() + 1, dims.end())));
}

void ModelImpl::build_for(const Shape& sample) {
  if (layers_.empty()) throw InvalidArgumentError("There are no layers in the model \"{}\".", name());
  const KerasTensor input =
      make_input(workspace(), sample, layers_.front()->input_dtype(), layers_.front()->name() + "_input");
  inputs_ = outputs_ = {input};
  for (LayerImpl* layer : layers_) outputs_ = {extended(*layer)};
  connect(inputs_, outputs_);
}

DType ModelImpl::input_dtype() const {
  return inputs_.empty() ? layers_.empty() ? DType::f32 : layers_.front()->input_dtype() : inputs_[0].dtype();
}

void ModelImpl::require_built() const {
  if (!built_)
    throw InvalidArgumentError(
        "This model has not yet been built. Build the model first by calling fit() with some data, or give "
        "its "
        "first layer an input_shape.");
}

std::vector<const Weight*> ModelImpl::weights() const {
  std::vector<const Weight*> all;
  for (const LayerImpl* layer : layers_)
    for (const Weight* weight : layer->weights())
      if (std::find(all.begin(), all.end(), weight) == all.end()) all.push_back(weight);
  return all;
}

std::vector<const Weight*> ModelImpl::trainable_weights(bool frozen) const {
  std::vector<const Weight*> all;
  for (const LayerImpl* layer : layers_)
    for (const Weight* weight : layer->trainable_weights(frozen || !trainable()))
      if (std::find(all.begin(), all.end(), weight) == all.end()) all.push_back(weight);
  return all;
}

std::vector<LayerImpl*> ModelImpl::leaves() {
  std::vector<LayerImpl*> all;
  for (LayerImpl* layer : layers_)
    for (LayerImpl* leaf : layer->leaves())
      if (std::find(all.begin(), all.end(), leaf) == all.end()) all.push_back(leaf);
  return all;
}

Outputs ModelImpl::compute(const CallContext& c, const Outputs& inputs) {
  return run_calls(c, inputs, false);
}

Outputs ModelImpl::form(const CallContext& around, const Outputs& inputs) {
  Scope scope = around.scope.name_scope(name());
  if (!context_.empty()) scope = scope.device(std::string_view(context_));
  return run_calls({.scope = scope, .frozen = around.frozen || !trainable(), .record = around.record}, inputs,
                   context_.empty());
}

Outputs ModelImpl::run_calls(const CallContext& c, const Outputs& inputs, bool at_their_places) {
  if (inputs.size() != inputs_.size())
    throw InvalidArgumentError("the model \"{}\" has {} inputs; it is called with {}", name(), inputs_.size(),
                               inputs.size());
  std::map<TensorSource, Output> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[source_of(inputs_[i])] = inputs[i];
  for (const ModelCall& call : calls_in_order_) {
    const CallRecord& record = call.layer->calls()[static_cast<std::size_t>(call.call)];
    if (record.inputs.empty()) continue;
    Outputs arguments;
    for (const KerasTensor& input : record.inputs) arguments.push_back(values.at(source_of(input)));
    const CallContext there{.scope = at_their_places ? at_place_of(c.scope, record) : c.scope,
                            .frozen = c.frozen,
                            .record = c.record};
    const Outputs results = call.layer->apply(there, arguments);
    for (std::size_t i = 0; i < results.size(); ++i)
      values[{call.layer, call.call, static_cast<int>(i)}] = results[i];
  }
  Outputs results;
  for (const KerasTensor& output : outputs_) results.push_back(values.at(source_of(output)));
  return results;
}

std::string unique_among(const std::vector<std::string>& names, const std::string& base) {
  std::string name = base;
  for (int k = 1; std::find(names.begin(), names.end(), name) != names.end(); ++k)
    name = base + '_' + std::to_string(k);
  return name;
}

std::vector<std::string> unique_output_names(const ModelImpl& model) {
  std::vector<std::string> names;
  for (const KerasTensor& output : model.outputs())
    names.push_back(unique_among(names, output.layer()->name()));
  return names;
}

int ModelImpl::call_in_model(const KerasTensor& tensor) const {
  // A model's own nodes count as its first call, as in Keras.
  int number = dynamic_cast<const ModelImpl*>(tensor.layer()) != nullptr ? 1 : 0;
  for (int call = 0; call < tensor.call(); ++call)
    number += std::any_of(calls_in_order_.begin(), calls_in_order_.end(), [&](const ModelCall& known) {
      return known.layer == tensor.layer() && known.call == call;
    });
  return number;
}

}  // namespace detail

namespace {

Layer handle(detail::LayerImpl* layer) { return Layer(layer->shared_from_this()); }

std::vector<std::string> layer_names(const std::vector<KerasTensor>& tensors) {
  std::vector<std::string> names;
  for (const KerasTensor& tensor : tensors) names.push_back(tensor.layer()->name());
  return names;
}

}  // namespace

Model::Model(const std::vector<KerasTensor>& inputs, const std::vector<KerasTensor>& outputs,
             const ModelOptions& options)
    : Layer(std::make_shared<detail::ModelImpl>(inputs, outputs, options)) {
  impl_->join(inputs.front().layer()->workspace());
}

detail::ModelImpl& Model::model() const { return static_cast<detail::ModelImpl&>(*impl_); }

std::vector<Layer> Model::layers() const {
  std::vector<Layer> handles;
  for (detail::LayerImpl* layer : model().layers()) handles.push_back(handle(layer));
  return handles;
}

Layer Model::get_layer(const std::string& name) const {
  for (detail::LayerImpl* layer : model().layers())
    if (layer->name() == name) return handle(layer);
  throw InvalidArgumentError("No such layer: {}", name);
}

Layer Model::get_layer(int index) const {
  const auto& layers = model().layers();
  const int count = static_cast<int>(layers.size());
  const int at = index < 0 ? index + count : index;
  if (at < 0 || at >= count)
    throw InvalidArgumentError("Was asked to retrieve layer at index {} but model only has {} layers.", index,
                               count);
  return handle(layers[static_cast<std::size_t>(at)]);
}

std::vector<KerasTensor> Model::inputs() const {
  model().require_built();
  return model().inputs();
}
std::vector<KerasTensor> Model::outputs() const {
  model().require_built();
  return model().outputs();
}
std::vector<std::string> Model::input_names() const { return layer_names(inputs()); }
std::vector<std::string> Model::output_names() const { return layer_names(outputs()); }

Sequential::Sequential(Workspace& workspace, const std::vector<Layer>& layers, const ModelOptions& options)
    : Model(std::make_shared<detail::ModelImpl>(options)) {
  impl_->join(workspace);
  for (const Layer& layer : layers) add(layer);
}

void Sequential::add(const Layer& layer) const { model().add(layer); }
void Sequential::pop() const { model().pop(); }

}  // namespace kolo::keras
