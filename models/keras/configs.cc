// Initializers, regularizers and layers as Keras' JSON has them.
#include <kolo/core/base/error.h>
#include <kolo/core/base/registry.h>
#include <kolo/models/keras/layer_internal.h>

namespace kolo::keras::detail {
namespace {

Registry<LayerFromConfig>& classes() {
  static Registry<LayerFromConfig> all("layer");
  return all;
}

// Names of an initializer's two numbers.
std::pair<const char*, const char*> numbers_of(const std::string& class_name) {
  if (class_name == "Constant") return {"value", nullptr};
  if (class_name == "RandomUniform") return {"minval", "maxval"};
  if (class_name == "RandomNormal" || class_name == "TruncatedNormal") return {"mean", "stddev"};
  if (class_name == "VarianceScaling") return {"scale", nullptr};
  if (class_name == "Orthogonal" || class_name == "Identity") return {"gain", nullptr};
  return {nullptr, nullptr};
}

Initializer of_class(const std::string& class_name, const Json& config) {
  if (class_name == "Zeros" || class_name == "Ones") return Initializer(snake_case(class_name));
  const auto [first, second] = numbers_of(class_name);
  if (first == nullptr) return Initializer(class_name);  // a short name, or one that is not known
  Initializer made("zeros");
  made.class_name = class_name;
  made.first = value_from(
      config, first,
      class_name == "RandomUniform"                                                                 ? -0.05
      : class_name == "RandomNormal" || class_name == "TruncatedNormal" || class_name == "Constant" ? 0.0
                                                                                                    : 1.0);
  if (second != nullptr) made.second = value_from(config, second, 0.05);
  if (class_name == "VarianceScaling") {
    made.mode = value_from<std::string>(config, "mode", "fan_in");
    made.distribution = value_from<std::string>(config, "distribution", "normal");
    if (made.distribution == "truncated_normal") made.distribution = "normal";  // Keras' later name
    if (made.distribution != "normal" && made.distribution != "uniform")
      throw InvalidArgumentError("VarianceScaling: the distribution is \"{}\"; kolo's has normal and uniform",
                                 made.distribution);
  }
  return made;
}

const Json& inner_config(const Json& object) {
  static const Json none = Json::object();
  const auto found = object.find("config");
  return found == object.end() ? none : *found;
}

}  // namespace

RegisterLayer::RegisterLayer(const char* class_name, LayerFromConfig make, SourceLine place) {
  classes().add(class_name, make, place);
}

LayerFromConfig find_layer_class(const std::string& class_name) {
  const LayerFromConfig* found = classes().find(class_name);
  return found == nullptr ? nullptr : *found;
}

Json to_config(const Shape& shape) {
  Json dims = Json::array();
  for (const std::int64_t dim : shape.dims()) dims.push_back(dim < 0 ? Json(nullptr) : Json(dim));
  return dims;
}

}  // namespace kolo::keras::detail

namespace kolo::keras {

using detail::Json;

void to_json(Json& json, const Initializer& initializer) {
  Json config = Json::object();
  const auto [first, second] = detail::numbers_of(initializer.class_name);
  if (first != nullptr) config[first] = initializer.first;
  if (second != nullptr) config[second] = initializer.second;
  if (initializer.class_name == "VarianceScaling") {
    config["mode"] = initializer.mode;
    config["distribution"] = initializer.distribution;
  }
  json = {{"class_name", initializer.class_name}, {"config", config}};
}

void to_json(Json& json, const Regularizer& regularizer) {
  json = nullptr;
  if (regularizer)
    json = {{"class_name", "L1L2"}, {"config", {{"l1", regularizer.l1}, {"l2", regularizer.l2}}}};
}

void to_json(Json& json, const Constraint& constraint) {
  json = nullptr;
  if (constraint.kind.empty()) return;
  if (constraint.kind == "non_neg") json = {{"class_name", "NonNeg"}, {"config", Json::object()}};
  else if (constraint.kind == "unit_norm") json = {{"class_name", "UnitNorm"}, {"config", Json::object()}};
  else json = {{"class_name", "MaxNorm"}, {"config", {{"max_value", constraint.max_value}}}};
}

void to_json(Json& json, const Pair& pair) { json = Json::array({pair.rows, pair.cols}); }

void from_json(const Json& json, Initializer& initializer) {
  initializer = json.is_string() ? detail::of_class(json, Json::object())
                                 : detail::of_class(json.at("class_name"), detail::inner_config(json));
}

void from_json(const Json& json, Regularizer& regularizer) {
  if (json.is_string()) {
    regularizer = {json.get<std::string>()};
    return;
  }
  const std::string name = json.at("class_name");
  if (name != "L1L2" && name != "L1" && name != "L2")
    throw InvalidArgumentError("Unknown regularizer: {}", name);
  const Json& numbers = detail::inner_config(json);
  regularizer = l1_l2(detail::value_from(numbers, "l1", 0.0), detail::value_from(numbers, "l2", 0.0));
}

void from_json(const Json& json, Constraint& constraint) {
  if (json.is_string()) {
    constraint = {json.get<std::string>()};
    return;
  }
  const std::string name = json.at("class_name");
  if (name == "MaxNorm")
    constraint = max_norm(detail::value_from(detail::inner_config(json), "max_value", 2.0));
  else constraint = {detail::snake_case(name)};
}

void from_json(const Json& json, Pair& pair) {
  if (json.is_number()) pair = json.get<std::int64_t>();
  else pair = {json.at(0).get<std::int64_t>(), json.at(1).get<std::int64_t>()};
}

}  // namespace kolo::keras
