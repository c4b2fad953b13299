#include <kolo/models/keras/layer.h>

#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/ops/basic.h>
#include <kolo/models/keras/layer_internal.h>

namespace kolo::keras {

std::string KerasTensor::name() const {
  return layer_->name() + '[' + std::to_string(call_) + "][" + std::to_string(index_) + ']';
}

KerasTensor Layer::operator()(const KerasTensor& input) const { return call({input}).front(); }
KerasTensor Layer::operator()(const std::vector<KerasTensor>& inputs) const { return call(inputs).front(); }
std::vector<KerasTensor> Layer::call(const std::vector<KerasTensor>& inputs) const {
  return impl_->call(inputs);
}

const std::string& Layer::name() const { return impl_->name(); }
const std::string& Layer::class_name() const { return impl_->class_name(); }
bool Layer::trainable() const { return impl_->trainable(); }
void Layer::set_trainable(bool trainable) const { impl_->set_trainable(trainable); }
std::string Layer::get_config() const { return json_text(impl_->full_config()); }

std::int64_t Layer::count_params() const {
  impl_->require_built();
  std::int64_t count = 0;
  for (const detail::Weight* weight : impl_->weights()) count += weight->variable.shape().elements();
  return count;
}

std::vector<std::string> Layer::weight_names() const {
  std::vector<std::string> names;
  for (const detail::Weight* weight : impl_->weights()) names.push_back(weight->full_name);
  return names;
}

std::vector<Tensor> Layer::get_weights() const {
  impl_->require_built();
  std::vector<std::string> names;
  for (const detail::Weight* weight : impl_->weights()) names.push_back(weight->variable.name());
  if (names.empty()) return {};
  impl_->workspace().initialize_variables();
  return impl_->workspace().session().get_variables(names);
}

void Layer::set_weights(const std::vector<Tensor>& values) const {
  impl_->require_built();
  const std::vector<const detail::Weight*> weights = impl_->weights();
  if (weights.size() != values.size())
    throw InvalidArgumentError(
        "You called `set_weights(weights)` on layer \"{}\" with a weight list of length {}, but the layer "
        "was "
        "expecting {} weights.",
        name(), values.size(), weights.size());
  std::map<std::string, Tensor> by_name;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Variable& variable = weights[i]->variable;
    if (variable.shape() != values[i].shape())
      throw InvalidArgumentError("Layer weight shape {} not compatible with provided weight shape {}",
                                 detail::shape_text(variable.shape()), detail::shape_text(values[i].shape()));
    by_name[variable.name()] = values[i];
  }
  if (by_name.empty()) return;
  impl_->workspace().initialize_variables();
  impl_->workspace().session().set_variables(by_name);
}

Shape Layer::output_shape() const {
  if (impl_->calls().empty())
    throw FailedPreconditionError(
        "The layer \"{}\" has never been called and thus has no defined output shape.", name());
  return impl_->calls().back().outputs.front().shape();
}

KerasTensor Input(Workspace& workspace, const Shape& shape, const InputOptions& options) {
  return detail::make_input(workspace, shape, options.dtype, options.name);
}

namespace detail {

void BuildRecord::add_average(const Variable& variable, Output next) {
  for (auto& [known, values] : moving_averages) {
    if (!(known == variable)) continue;
    values.push_back(next);
    return;
  }
  moving_averages.push_back({variable, {next}});
}

Scope at_place_of(const Scope& s, const CallRecord& call) {
  Scope scope = s;
  for (const std::string& device : call.devices) scope = scope.device(std::string_view(device));
  return call.name_scope.empty() ? scope : scope.name_scope(call.name_scope);
}

ReplicaPlace::ReplicaPlace(Workspace& workspace, const std::string& device, std::string name_scope)
    : workspace_(workspace), device_(workspace, device) {
  workspace_.name_scope_ = std::move(name_scope);
}
ReplicaPlace::~ReplicaPlace() { workspace_.name_scope_.clear(); }

void LayerImpl::join(Workspace& workspace) {
  if (workspace_ == &workspace) return;
  if (workspace_ != nullptr)
    throw InvalidArgumentError(
        "the layer \"{}\" belongs to another workspace; a layer stays in the one it joined", name());
  workspace_ = &workspace;
  if (common_.name.empty())
    common_.name = workspace.unique_layer_name(class_name_ == "InputLayer" ? "Input" : class_name_);
  creation_ = workspace.layers_.size();
  workspace.layers_.push_back(shared_from_this());
}

void LayerImpl::require_built() const {
  if (!built_) throw FailedPreconditionError("This layer has not yet been built: {}", name());
}

std::vector<KerasTensor> LayerImpl::call(const std::vector<KerasTensor>& inputs) {
  if (inputs.empty()) throw InvalidArgumentError("the layer \"{}\" is called without inputs", name());
  Workspace& workspace = inputs.front().layer()->workspace();
  for (const KerasTensor& input : inputs)
    if (&input.layer()->workspace() != &workspace)
      throw InvalidArgumentError("the inputs {} and {} are of different workspaces", inputs.front().name(),
                                 input.name());
  join(workspace);
  Outputs values;
  for (const KerasTensor& input : inputs) values.push_back(input.output());
  const Outputs outputs = apply({.scope = workspace.scope()}, values);
  calls_.push_back({inputs, outputs, workspace.devices_, workspace.name_scope_});
  return results_of(static_cast<int>(calls_.size()) - 1);
}

std::vector<KerasTensor> LayerImpl::results_of(int call) {
  std::vector<KerasTensor> results;
  const Outputs& outputs = calls_.at(static_cast<std::size_t>(call)).outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    results.push_back(KerasTensor(outputs[i], this, call, static_cast<int>(i)));
  return results;
}

KerasTensor LayerImpl::note_source(Output output) {
  calls_.push_back({{}, {output}});
  built_ = true;
  return results_of(static_cast<int>(calls_.size()) - 1).front();
}

Outputs LayerImpl::apply(const CallContext& around, const Outputs& inputs) {
  if (!built_) {
    std::vector<Shape> shapes;
    for (const Output& input : inputs) shapes.push_back(input.shape());
    build(shapes);
    built_ = true;
  }
  const CallContext inner{.scope = around.scope.name_scope(name()),
                          .frozen = around.frozen || !trainable(),
                          .record = around.record};
  Outputs outputs = compute(inner, inputs);
  const Regularizer penalty = activity_regularizer();
  if (penalty && around.record != nullptr)
    for (const Output& output : outputs)
      around.record->penalties.push_back(penalty.penalty(inner.scope, output));
  return outputs;
}

void LayerImpl::renew_weights() {
  if (own_weights_.empty()) return;
  const Layer self(shared_from_this());
  const std::vector<Tensor> values = self.get_weights();
  std::vector<Shape> shapes;
  for (const KerasTensor& input : calls_.front().inputs) shapes.push_back(input.shape());
  own_weights_.clear();
  build(shapes);
  self.set_weights(values);
}

std::vector<const Weight*> LayerImpl::weights() const {
  std::vector<const Weight*> all;
  for (const Weight& weight : own_weights_) all.push_back(&weight);
  return all;
}

std::vector<const Weight*> LayerImpl::trainable_weights(bool frozen) const {
  std::vector<const Weight*> all;
  if (frozen || !trainable()) return all;
  for (const Weight& weight : own_weights_)
    if (weight.trainable) all.push_back(&weight);
  return all;
}

Variable LayerImpl::add_weight(const std::string& name, const Shape& shape, const Initializer& initializer,
                               const WeightOptions& options) {
  const std::string full = this->name() + '/' + name;
  const Scope s = workspace_->scope();
  const Output first = initializer.values(s.named(full + "/initial_value"), DType::f32, shape, options.fans);
  own_weights_.push_back({.name = name,
                          .variable = Variable(s.named(full), first, {.trainable = options.trainable}),
                          .trainable = options.trainable,
                          .regularizer = options.regularizer,
                          .constraint = options.constraint,
                          .norm_axes = options.norm_axes,
                          .full_name = full});
  return own_weights_.back().variable;
}

Json LayerImpl::full_config() const {
  Json all = {{"name", name()}, {"trainable", trainable()}};
  if (common_.input_shape.has_rank()) {
    Json shape = to_config(common_.input_shape);
    shape.insert(shape.begin(), nullptr);
    all["batch_input_shape"] = shape;
    all["dtype"] = common_.dtype;
  }
  all.update(config());
  return all;
}

InputLayer::InputLayer(const Shape& shape, DType dtype, std::string name)
    : LayerImpl("InputLayer", {.name = std::move(name), .input_shape = shape, .dtype = numpy_name(dtype)}),
      dtype_(dtype) {}

Json InputLayer::full_config() const {
  Json shape = to_config(common().input_shape);
  shape.insert(shape.begin(), nullptr);
  return {{"batch_input_shape", shape}, {"dtype", numpy_name(dtype_)}, {"sparse", false}, {"name", name()}};
}

Shape InputLayer::batch_shape() const {
  std::vector<std::int64_t> dims = common().input_shape.dims();
  dims.insert(dims.begin(), -1);
  return Shape(dims);
}

Outputs InputLayer::compute(const CallContext&, const Outputs& inputs) { return inputs; }

KerasTensor make_input(Workspace& workspace, const Shape& shape, DType dtype, const std::string& name) {
  if (!shape.has_rank()) throw InvalidArgumentError("an input needs the shape of a sample");
  const auto layer = std::make_shared<InputLayer>(shape, dtype, name);
  layer->join(workspace);
  return layer->note_source(placeholder(workspace.scope().named(layer->name()), dtype, layer->batch_shape()));
}

}  // namespace detail
}  // namespace kolo::keras
