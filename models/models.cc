#include <kolo/models/models.h>

#include <utility>

#include <kolo/core/base/registry.h>

namespace kolo::models {
namespace {

Registry<Model>& registry() {
  static Registry<Model> models("model");
  return models;
}

}  // namespace

RegisterModel::RegisterModel(Model model, SourceLine place) {
  const std::string name = model.name;
  registry().add(name, std::move(model), place);
}

const Model& find_model(const std::string& name) { return registry().at(name); }
std::vector<std::string> registered_models() { return registry().names(); }

}  // namespace kolo::models
