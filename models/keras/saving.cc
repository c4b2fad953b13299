#include <kolo/models/keras/model.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/log.h>
#include <kolo/core/training/safetensors.h>
#include <kolo/models/keras/optimizers_internal.h>
#include <kolo/models/keras/trainer_internal.h>

namespace kolo::keras {
namespace {

using detail::Json;
using detail::LayerImpl;
using detail::Weight;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;  // of the .json, which is read whole

std::string stem_of(const std::string& path) {
  const std::string suffix = std::filesystem::path(path).extension().string();
  if (suffix == ".h5" || suffix == ".hdf5")
    throw UnimplementedError("{}: HDF5 is not written or read; models are <path>.json and <path>.safetensors",
                             path);
  return suffix == ".json" || suffix == ".safetensors" ? path.substr(0, path.size() - suffix.size()) : path;
}

std::vector<LayerImpl*> layers_with_weights(detail::ModelImpl& model) {
  std::vector<LayerImpl*> layers = model.leaves();
  layers.erase(
      std::remove_if(layers.begin(), layers.end(), [](LayerImpl* layer) { return layer->weights().empty(); }),
      layers.end());
  return layers;
}

std::vector<Tensor> values_of(Workspace& workspace, const std::vector<std::string>& names) {
  workspace.initialize_variables();
  return names.empty() ? std::vector<Tensor>() : workspace.session().get_variables(names);
}

// Names of files to names of variables.
using Names = std::vector<std::pair<std::string, std::string>>;

std::map<std::string, Tensor> tensors_of(Workspace& workspace, const Names& names) {
  std::vector<std::string> variables;
  for (const auto& [file, variable] : names) variables.push_back(variable);
  const std::vector<Tensor> values = values_of(workspace, variables);
  std::map<std::string, Tensor> tensors;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!tensors.emplace(names[i].first, values[i]).second)
      throw InvalidArgumentError("two weights are called \"{}\"; a file needs a name for each",
                                 names[i].first);
  return tensors;
}

Names names_of_weights(detail::ModelImpl& model) {
  Names names;
  for (const LayerImpl* layer : layers_with_weights(model))
    for (const Weight* weight : layer->weights())
      names.emplace_back(weight->full_name, weight->variable.name());
  return names;
}

Json weights_json(detail::ModelImpl& model) {
  Json all = Json::array();
  for (const LayerImpl* layer : layers_with_weights(model)) {
    Json names = Json::array();
    for (const Weight* weight : layer->weights()) names.push_back(weight->name);
    all.push_back(Json::array({layer->name(), names}));
  }
  return all;
}

// The JSON last: who finds it finds the numbers, and their sums, too.
void write(const std::string& stem, Json json, const std::map<std::string, Tensor>& tensors) {
  DurableFile numbers(stem + ".safetensors");
  const SafetensorsSums sums = write_safetensors(numbers, tensors);
  numbers.finish();
  numbers.publish();
  json["sums"] = {{"header", sums.header}, {"tensors", sums.tensors}};
  write_durable_file(stem + ".json", json_text(json));
  sync_directory(folder_of(stem));
}

Json loss_json(const Loss& loss) {
  if (!loss) return nullptr;
  if (!loss.from_logits()) return loss.name();
  return {{"class_name", loss.name()}, {"config", {{"from_logits", true}}}};
}

Json losses_json(const Losses& losses) {
  if (losses.is_list) {
    Json list = Json::array();
    for (const Loss& loss : losses.list) list.push_back(loss_json(loss));
    return list;
  }
  if (!losses.is_map) return loss_json(losses.one);
  Json map = Json::object();
  for (const auto& [name, loss] : losses.by_name) map[name] = loss_json(loss);
  return map;
}

Json metrics_json(const std::vector<Metric>& metrics) {
  Json names = Json::array();
  for (const Metric& metric : metrics) names.push_back(metric.name());
  return names;
}

Json training_json(const CompileOptions& options) {
  const detail::OptimizerImpl& optimizer = options.optimizer.impl();
  Json config = nullptr;
  Json by_output = Json::object();
  for (const auto& [output, metrics] : options.metrics_by_output) by_output[output] = metrics_json(metrics);
  if (!optimizer.is_kolos()) config = {{"class_name", optimizer.name()}, {"config", optimizer.config()}};
  return {{"optimizer_config", config},
          {"loss", losses_json(options.loss)},
          {"metrics", metrics_json(options.metrics)},
          {"metrics_by_output", by_output},
          {"weighted_metrics", metrics_json(options.weighted_metrics)},
          {"loss_weights", options.loss_weights}};
}

// Both files, the tensors checked against the sums.
class Saved {
 public:
  explicit Saved(const std::string& stem) : stem_(stem), reader_(stem + ".safetensors") {
    const std::string text = InputFile(stem + ".json").read_all(kMostBytes);
    try {
      json_ = Json::parse(text);
      if (json_.at("sums").at("header").get<std::uint32_t>() != reader_.header_crc32c())
        throw DataLossError("{0}.safetensors: its header is not the one that {0}.json was written with",
                            stem);
      static_cast<void>(json_.at("weights").size());
    } catch (const nlohmann::json::exception& error) {
      throw DataLossError("{}.json: {}", stem, error.what());
    }
  }

  const Json& json() const { return json_; }
  bool has(const std::string& name) const { return reader_.entries().count(name) == 1; }
  const Shape& shape(const std::string& name) const {
    if (!has(name)) throw DataLossError("{}.safetensors: it lacks \"{}\"", stem_, name);
    return reader_.entries().at(name).shape;
  }
  Tensor read(const std::string& name) {
    Tensor tensor(reader_.entries().at(name).dtype, shape(name));
    const auto& sums = json_.at("sums").at("tensors");
    if (reader_.read(name, tensor) != sums.value(name, std::uint32_t{0}))
      throw DataLossError("{}.safetensors: \"{}\" is damaged: its sum is not the one that was written", stem_,
                          name);
    return tensor;
  }

 private:
  std::string stem_;
  SafetensorsReader reader_;
  Json json_;
};

struct SavedLayer {
  std::string name;
  std::vector<std::string> weights;
};

std::vector<SavedLayer> saved_layers(const Saved& saved) {
  std::vector<SavedLayer> layers;
  for (const Json& entry : saved.json().at("weights"))
    layers.push_back({entry.at(0).get<std::string>(), entry.at(1).get<std::vector<std::string>>()});
  return layers;
}

// What is set once all of it fits.
using Assignments = std::map<std::string, std::string>;  // variable → name in the file

void assign_layer(const Saved& saved, std::size_t number, const LayerImpl& layer, const SavedLayer& from,
                  Assignments& to) {
  const std::vector<const Weight*> weights = layer.weights();
  if (weights.size() != from.weights.size())
    throw InvalidArgumentError(
        "Layer #{} (named \"{}\") expects {} weight(s), but the saved weights have {} element(s).", number,
        layer.name(), weights.size(), from.weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::string name = from.name + '/' + from.weights[i];
    if (saved.shape(name) != weights[i]->variable.shape())
      throw InvalidArgumentError(
          "Layer #{} (named \"{}\"), weight {} has shape {}, but the saved weight has shape {}.", number,
          layer.name(), weights[i]->full_name, detail::shape_text(weights[i]->variable.shape()),
          detail::shape_text(saved.shape(name)));
    to[weights[i]->variable.name()] = name;
  }
}

Assignments by_order(const Saved& saved, const std::vector<LayerImpl*>& layers) {
  const std::vector<SavedLayer> from = saved_layers(saved);
  if (from.size() != layers.size())
    throw InvalidArgumentError(
        "You are trying to load a weight file containing {} layers into a model with {} layers.", from.size(),
        layers.size());
  Assignments to;
  for (std::size_t i = 0; i < layers.size(); ++i) assign_layer(saved, i, *layers[i], from[i], to);
  return to;
}

Assignments by_names(const Saved& saved, const std::vector<LayerImpl*>& layers, bool skip_mismatch) {
  Assignments to;
  std::size_t number = 0;
  for (const SavedLayer& from : saved_layers(saved)) {
    for (const LayerImpl* layer : layers) {
      if (layer->name() != from.name) continue;
      Assignments of_layer;
      try {
        assign_layer(saved, number, *layer, from, of_layer);
      } catch (const InvalidArgumentError& error) {
        if (!skip_mismatch) throw;
        log_warning("Skipping loading of weights: {}", error.what());
        continue;
      }
      to.merge(of_layer);
    }
    ++number;
  }
  return to;
}

void set(Saved& saved, Workspace& workspace, const Assignments& assignments) {
  std::map<std::string, Tensor> values;
  for (const auto& [variable, name] : assignments) values[variable] = saved.read(name);
  workspace.initialize_variables();
  if (!values.empty()) workspace.session().set_variables(values);
}

Loss loss_from(const Json& json, const CustomObjects& custom) {
  if (json.is_null()) return {};
  if (json.is_object())
    return {json.at("class_name").get<std::string>(),
            {.from_logits = json.at("config").value("from_logits", false)}};
  const std::string name = json;
  if (const auto found = custom.losses.find(name); found != custom.losses.end())
    return Loss(found->second, name);
  return {name};
}

Losses losses_from(const Json& json, const CustomObjects& custom) {
  Losses losses;
  if (json.is_array()) {
    losses.is_list = true;
    for (const Json& one : json) losses.list.push_back(loss_from(one, custom));
  } else if (json.is_object() && !json.contains("class_name")) {
    losses.is_map = true;
    for (const auto& [name, one] : json.items()) losses.by_name[name] = loss_from(one, custom);
  } else {
    losses.one = loss_from(json, custom);
  }
  return losses;
}

std::vector<Metric> metrics_from(const Json& names, const CustomObjects& custom) {
  std::vector<Metric> metrics;
  for (const std::string name : names) {
    const auto found = custom.losses.find(name);
    metrics.push_back(found == custom.losses.end() ? Metric(name) : Metric(name, found->second));
  }
  return metrics;
}

void compile_as_saved(const Model& model, Saved& saved, const LoadModelOptions& options) {
  const auto training = saved.json().find("training_config");
  if (training == saved.json().end()) {
    log_warning(
        "No training configuration found in save file: the model was *not* compiled. Compile it manually.");
    return;
  }
  const Json& config = training->at("optimizer_config");
  if (config.is_null() && !options.optimizer) {
    log_warning(
        "the model was trained by an optimizer of kolo, which its file does not name: it is not compiled; "
        "give "
        "load_model the optimizer");
    return;
  }
  Optimizer optimizer = options.optimizer ? *options.optimizer : detail::optimizer_from_config(config);
  if (options.distributed) optimizer = distributed(optimizer, *options.distributed);
  std::map<std::string, std::vector<Metric>> by_output;
  if (const auto named = training->find("metrics_by_output"); named != training->end())
    for (const auto& [output, names] : named->items())
      by_output[output] = metrics_from(names, options.custom);
  model.compile({.optimizer = optimizer,
                 .loss = losses_from(training->at("loss"), options.custom),
                 .metrics = metrics_from(training->at("metrics"), options.custom),
                 .metrics_by_output = by_output,
                 .loss_weights = training->at("loss_weights").get<std::map<std::string, double>>(),
                 .weighted_metrics = metrics_from(training->at("weighted_metrics"), options.custom)});
  Assignments state;
  for (const detail::OptimizerState& one : model.model().trainer().optimizer_state())
    if (const std::string name = "optimizer/" + one.name;
        saved.has(name) && saved.shape(name) == one.variable.shape())
      state[one.variable.name()] = name;
  set(saved, model.model().workspace(), state);
}

}  // namespace

void Model::save(const std::string& path, const SaveOptions& options) const {
  const std::string stem = stem_of(path);
  model().require_built();
  Json json = Json::parse(Model(model().template_model().shared_from_this()).to_json());
  Names names = names_of_weights(model());
  if (options.include_optimizer && model().is_compiled()) {
    json["training_config"] = training_json(model().trainer().options());
    for (const detail::OptimizerState& state : model().trainer().optimizer_state())
      names.emplace_back("optimizer/" + state.name, state.variable.name());
  }
  json["weights"] = weights_json(model());
  write(stem, std::move(json), tensors_of(model().workspace(), names));
}

void Model::save_weights(const std::string& path) const {
  const std::string stem = stem_of(path);
  model().require_built();
  write(stem, Json{{"weights", weights_json(model())}},
        tensors_of(model().workspace(), names_of_weights(model())));
}

void Model::load_weights(const std::string& path, const LoadWeightsOptions& options) const {
  model().require_built();
  Saved saved(stem_of(path));
  const std::vector<LayerImpl*> layers = layers_with_weights(model());
  set(saved, model().workspace(),
      options.by_name ? by_names(saved, layers, options.skip_mismatch) : by_order(saved, layers));
}

Model load_model(Workspace& workspace, const std::string& path, const LoadModelOptions& options) {
  Saved saved(stem_of(path));
  Model model = model_from_json(workspace, json_text(saved.json()), options.custom);
  set(saved, workspace, by_order(saved, layers_with_weights(model.model())));
  compile_as_saved(model, saved, options);
  return model;
}

}  // namespace kolo::keras
