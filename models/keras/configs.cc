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

Json to_config(const Initializer& initializer) {
  Json config = Json::object();
  const auto [first, second] = numbers_of(initializer.class_name);
  if (first != nullptr) config[first] = initializer.first;
  if (second != nullptr) config[second] = initializer.second;
  if (initializer.class_name == "VarianceScaling") {
    config["mode"] = initializer.mode;
    config["distribution"] = initializer.distribution;
  }
  return {{"class_name", initializer.class_name}, {"config", config}};
}

Json to_config(const Regularizer& regularizer) {
  if (!regularizer) return nullptr;
  return {{"class_name", "L1L2"}, {"config", {{"l1", regularizer.l1}, {"l2", regularizer.l2}}}};
}

Json to_config(const Constraint& constraint) {
  if (constraint.kind.empty()) return nullptr;
  if (constraint.kind == "non_neg") return {{"class_name", "NonNeg"}, {"config", Json::object()}};
  if (constraint.kind == "unit_norm") return {{"class_name", "UnitNorm"}, {"config", Json::object()}};
  return {{"class_name", "MaxNorm"}, {"config", {{"max_value", constraint.max_value}}}};
}

Json to_config(const Pair& pair) { return Json::array({pair.rows, pair.cols}); }

Json to_config(const Shape& shape) {
  Json dims = Json::array();
  for (const std::int64_t dim : shape.dims()) dims.push_back(dim < 0 ? Json(nullptr) : Json(dim));
  return dims;
}

Initializer initializer_from(const Json& config, const char* key, const char* otherwise) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return {otherwise};
  if (found->is_string()) return of_class(found->get<std::string>(), Json::object());
  return of_class(found->at("class_name").get<std::string>(), inner_config(*found));
}

Regularizer regularizer_from(const Json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return {};
  if (found->is_string()) return {found->get<std::string>()};
  const std::string name = found->at("class_name").get<std::string>();
  if (name != "L1L2" && name != "L1" && name != "L2")
    throw InvalidArgumentError("Unknown regularizer: {}", name);
  const Json& numbers = inner_config(*found);
  return l1_l2(value_from(numbers, "l1", 0.0), value_from(numbers, "l2", 0.0));
}

Constraint constraint_from(const Json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return {};
  if (found->is_string()) return {found->get<std::string>()};
  const std::string name = found->at("class_name").get<std::string>();
  if (name == "MaxNorm") return max_norm(value_from(inner_config(*found), "max_value", 2.0));
  return {snake_case(name)};
}

Pair pair_from(const Json& config, const char* key, Pair otherwise) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return otherwise;
  if (found->is_number()) return {found->get<std::int64_t>()};
  return {found->at(0).get<std::int64_t>(), found->at(1).get<std::int64_t>()};
}

}  // namespace kolo::keras::detail
