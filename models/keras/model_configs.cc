// Models as Keras' JSON has them, and back.
#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/models/keras/model_internal.h>

namespace kolo::keras {
namespace detail {
namespace {

Json class_and_config(const LayerImpl& layer) {
  return {{"class_name", layer.class_name()}, {"config", layer.full_config()}};
}

// One layer of a functional config, with those calls that could not be made yet.
struct Pending {
  Layer layer;
  const Json* calls;
  std::size_t next = 0;
};

void refuse_other_inputs(const std::string& name, const Json& config) {
  for (const auto& [key, value] : config.items()) {
    const bool is_known = key == "name" || key == "batch_input_shape" || value.is_null() || value == false ||
                          (key == "dtype" && (value == "float32" || value == "int32" || value == "int64"));
    if (!is_known)
      throw InvalidArgumentError(
          "InputLayer \"{}\": \"{}\" is {}; kolo's inputs are dense, of float32, int32 or int64", name, key,
          json_text(value));
  }
}

class FunctionalReader {
 public:
  FunctionalReader(Workspace& workspace, const Json& config, const CustomObjects& custom)
      : workspace_(workspace), config_(config) {
    for (const Json& layer : config.at("layers")) read_layer(layer, custom);
  }

  Model model() {
    while (make_calls()) {
    }
    for (const auto& [name, pending] : layers_)
      if (pending.next < pending.calls->size())
        throw InvalidArgumentError("the layer \"{}\" of the config takes results of layers that it lacks",
                                   name);
    return Model(tensors("input_layers"), tensors("output_layers"),
                 {.name = value_from<std::string>(config_, "name", ""),
                  .trainable = value_from(config_, "trainable", true)});
  }

 private:
  using Place = std::tuple<std::string, int, int>;
  static Place place_of(const Json& entry) {
    return {entry.at(0).get<std::string>(), entry.at(1).get<int>(), entry.at(2).get<int>()};
  }

  void read_layer(const Json& object, const CustomObjects& custom) {
    const std::string name = object.at("name");
    if (object.at("class_name") == "InputLayer") {
      const Json& config = object.at("config");
      refuse_other_inputs(name, config);
      const auto options = with_common(config, LayerOptions{});
      const DType dtype = value_from<std::string>(config, "dtype", "float32") == "int32"   ? DType::i32
                          : value_from<std::string>(config, "dtype", "float32") == "int64" ? DType::i64
                                                                                           : DType::f32;
      results_.emplace(Place{name, 0, 0},
                       Input(workspace_, options.input_shape, {.name = name, .dtype = dtype}));
      return;
    }
    layers_.emplace_back(name,
                         Pending{layer_from_config(workspace_, object, custom), &object.at("inbound_nodes")});
  }

  // True if a call could be made.
  bool make_calls() {
    bool made = false;
    for (auto& [name, pending] : layers_)
      while (pending.next < pending.calls->size() && make_call(name, pending)) made = true;
    return made;
  }

  bool make_call(const std::string& name, Pending& pending) {
    std::vector<KerasTensor> arguments;
    for (const Json& entry : (*pending.calls)[pending.next]) {
      const auto found = results_.find(place_of(entry));
      if (found == results_.end()) return false;
      if (entry.size() > 3 && !entry[3].empty())
        throw InvalidArgumentError("\"{}\" is called with {}; kolo's layers take tensors alone", name,
                                   json_text(entry[3]));
      arguments.push_back(found->second);
    }
    const bool is_model = dynamic_cast<const ModelImpl*>(&pending.layer.impl()) != nullptr;
    const int number = static_cast<int>(pending.next++) + (is_model ? 1 : 0);
    int index = 0;
    for (const KerasTensor& result : pending.layer.call(arguments))
      results_.emplace(Place{name, number, index++}, result);
    return true;
  }

  std::vector<KerasTensor> tensors(const char* key) const {
    std::vector<KerasTensor> found;
    for (const Json& entry : config_.at(key)) {
      const auto at = results_.find(place_of(entry));
      if (at == results_.end())
        throw InvalidArgumentError("{} of the config name \"{}\", which it lacks", key, json_text(entry));
      found.push_back(at->second);
    }
    return found;
  }

  Workspace& workspace_;
  const Json& config_;
  std::vector<std::pair<std::string, Pending>> layers_;
  std::map<Place, KerasTensor> results_;
};

Layer sequential_from(Workspace& workspace, const Json& config, const CustomObjects& custom) {
  // Up to Keras 2.2.2 the config was the list of layers alone.
  const Json& layers = config.is_array() ? config : config.at("layers");
  ModelOptions options;
  if (config.is_object()) {
    options.name = value_from<std::string>(config, "name", "");
    options.trainable = value_from(config, "trainable", true);
  }
  Sequential model(workspace, {}, options);
  for (const Json& layer : layers) model.add(layer_from_config(workspace, layer, custom));
  return model;
}

// [2, 2] as 2, and whole numbers as all others.
Json plain_value(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_array() || value.empty()) return value;
  Json all = Json::array();
  for (const Json& one : value) all.push_back(plain_value(one));
  return std::all_of(all.begin(), all.end(), [&](const Json& one) { return one == all[0]; }) ? all[0] : all;
}

// Values by which Keras writes that something is not asked for.
bool asks_for_nothing(const std::string& key, const Json& value) {
  if (value.is_null() || value == false || ((value.is_object() || value.is_array()) && value.empty()))
    return true;
  if (key == "dtype" || key == "input_dtype" || key == "input_length" || key == "seed" || key == "name" ||
      key == "trainable" || key == "batch_input_shape" || key == "function_type" || key == "implementation")
    return true;
  if (key == "dilation_rate" || key == "groups") return plain_value(value) == Json(1.0);
  if (key == "data_format") return value == "channels_first" || value == "channels_last";  // of Flatten
  if (key == "interpolation") return value == "nearest";
  if (key == "alpha_initializer")
    return value_from<Initializer>({{"i", value}}, "i", "zeros").class_name == "Zeros";
  return false;
}

// Norms are taken along all axes but the output's, which Keras counts.
bool is_own_axis(const LayerImpl& layer, const Json& axis) {
  const bool is_convolution = layer.class_name().find("Conv") != std::string::npos;
  return is_convolution ? axis == Json::array({0, 1, 2}) : axis == 0 || axis == Json::array({0});
}

// Of an initializer, a regularizer or a constraint.
void refuse_what_a_part_does_not_understand(const std::string& key, const Json& theirs, const Json& ours,
                                            const LayerImpl& layer) {
  if (!theirs.is_object()) return;
  const Json config = theirs.value("config", Json::object());
  const Json own = ours.is_object() ? ours.value("config", Json::object()) : Json::object();
  for (const auto& [inner, value] : config.items()) {
    const auto found = own.find(inner);
    if (found != own.end() && plain_value(value) == plain_value(*found)) continue;
    if (found == own.end() && (asks_for_nothing(inner, value) || plain_value(value) == Json(0.0))) continue;
    if (inner == "axis" && is_own_axis(layer, value)) continue;
    if (inner == "distribution" && value == "truncated_normal") continue;
    throw InvalidArgumentError("{} \"{}\": \"{}\" has \"{}\" {}; kolo's has {}", layer.class_name(),
                               layer.name(), key, inner, json_text(value),
                               found == own.end() ? "no such setting" : json_text(*found));
  }
}

// A key that is passed over would be another network, without a word.
void refuse_what_is_not_understood(const Json& config, const LayerImpl& layer, const Workspace& workspace) {
  Json own = layer.full_config();
  // A layer learns of its workspace when it is called. What is flattened is what the layer before gives.
  if (own.contains("data_format"))
    own["data_format"] = workspace.channels_last() ? "channels_last" : "channels_first";
  if (layer.class_name() == "Flatten") own.erase("data_format");
  for (const auto& [key, value] : config.items()) {
    const auto found = own.find(key);
    if (found == own.end() && asks_for_nothing(key, value)) continue;
    if (found == own.end())
      throw InvalidArgumentError("{} \"{}\": \"{}\" is {}; kolo's layer has no such setting",
                                 layer.class_name(), layer.name(), key, json_text(value));
    refuse_what_a_part_does_not_understand(key, value, *found, layer);
    const Json theirs = plain_value(value), ours = plain_value(*found);
    if (theirs.is_object() || ours.is_object() || theirs.type() != ours.type() || theirs == ours) continue;
    if (key == "data_format")
      throw InvalidArgumentError(
          "{} \"{}\": \"data_format\" is {}, that of the workspace {}; make the Workspace with "
          "{{.data_format = {}}}",
          layer.class_name(), layer.name(), json_text(value), json_text(*found), json_text(value));
    throw InvalidArgumentError("{} \"{}\": \"{}\" is {}; kolo's layer has {}", layer.class_name(),
                               layer.name(), key, json_text(value), json_text(*found));
  }
}

}  // namespace

Layer layer_from_config(Workspace& workspace, const Json& object, const CustomObjects& custom) {
  const std::string class_name = object.at("class_name");
  const Json& config = object.at("config");
  if (class_name == "Sequential") return sequential_from(workspace, config, custom);
  if (class_name == "Model") return FunctionalReader(workspace, config, custom).model();
  if (class_name == "Lambda") {
    const std::string function =
        config.at("function").is_string() ? config.at("function").get<std::string>() : "";
    const auto found = custom.functions.find(function);
    if (found == custom.functions.end())
      throw InvalidArgumentError("Unknown function: {}; give it as a custom object", function);
    return Lambda(found->second, function, with_common(config, LayerOptions{}));
  }
  if (const auto found = custom.layers.find(class_name); found != custom.layers.end())
    return found->second(json_text(config));
  if (const LayerFromConfig make = find_layer_class(class_name)) {
    Layer layer = [&] {
      try {
        return make(config);
      } catch (const Json::exception& error) {
        throw InvalidArgumentError("{} \"{}\": a value of the config is of another kind: {}", class_name,
                                   value_from<std::string>(config, "name", ""), error.what());
      }
    }();
    refuse_what_is_not_understood(config, layer.impl(), workspace);
    return layer;
  }
  throw InvalidArgumentError("Unknown layer: {}", class_name);
}

Json ModelImpl::full_config() const {
  if (!sequential_) return functional_config();
  Json layers = Json::array();
  for (const LayerImpl* layer : layers_) layers.push_back(class_and_config(*layer));
  Json config = {{"name", name()}, {"layers", layers}};
  if (!trainable()) config["trainable"] = false;
  if (built_ && !layers_.empty() && !config["layers"][0]["config"].contains("batch_input_shape")) {
    Json shape = to_config(inputs_[0].shape());
    config["layers"][0]["config"]["batch_input_shape"] = shape;
  }
  return config;
}

Json ModelImpl::functional_config() const {
  const auto place = [&](const KerasTensor& tensor, bool arguments) {
    Json entry = Json::array({tensor.layer()->name(), call_in_model(tensor), tensor.index()});
    if (arguments) entry.push_back(Json::object());
    return entry;
  };
  Json layers = Json::array();
  for (const LayerImpl* layer : layers_) {
    Json entry = class_and_config(*layer);
    entry["name"] = layer->name();
    entry["inbound_nodes"] = Json::array();
    for (std::size_t call = 0; call < layer->calls().size(); ++call) {
      const bool is_here = std::any_of(
          calls_in_order_.begin(), calls_in_order_.end(),
          [&](const ModelCall& c) { return c.layer == layer && c.call == static_cast<int>(call); });
      const auto& inputs = layer->calls()[call].inputs;
      if (!is_here || inputs.empty()) continue;
      Json arguments = Json::array();
      for (const KerasTensor& input : inputs) arguments.push_back(place(input, true));
      entry["inbound_nodes"].push_back(arguments);
    }
    layers.push_back(entry);
  }
  Json config = {{"name", name()}, {"layers", layers}};
  if (!trainable()) config["trainable"] = false;
  for (const auto& [key, tensors] :
       {std::pair("input_layers", &inputs_), std::pair("output_layers", &outputs_)}) {
    config[key] = Json::array();
    for (const KerasTensor& tensor : *tensors) config[key].push_back(place(tensor, false));
  }
  return config;
}

}  // namespace detail

std::string Model::to_json() const {
  return json_text(detail::Json{{"class_name", class_name()},
                                {"config", impl_->full_config()},
                                {"keras_version", "2.2.4"},
                                {"backend", "kolo"}});
}

Model model_from_json(Workspace& workspace, const std::string& json, const CustomObjects& custom) {
  try {
    const detail::Json object = detail::Json::parse(json);
    if (object.at("class_name") != "Sequential" && object.at("class_name") != "Model")
      throw InvalidArgumentError("the JSON is of a {}; it must be of a Model or a Sequential",
                                 json_text(object.at("class_name")));
    return Model(detail::layer_from_config(workspace, object, custom).shared());
  } catch (const nlohmann::json::exception& error) {
    throw InvalidArgumentError("this is no JSON of a model: {}", error.what());
  }
}

}  // namespace kolo::keras
