#include <kolo/models/models.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
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

bool Model::takes(std::string_view what) const {
  return std::find(sizes.begin(), sizes.end(), what) != sizes.end();
}

Output Model::build(Scope& s, Output x, const ModelSize& size) const {
  const auto check_takes = [&](const char* what, auto chosen) {
    if (chosen != 0 && !takes(what))
      throw InvalidArgumentError("{}: its {} cannot be chosen, and {} was asked for", name, what, chosen);
  };
  check_takes("layers", size.layers);
  check_takes("width", size.width);
  check_takes("heads", size.heads);
  check_takes("dropout", size.dropout);
  if (size.classes < 0 || size.layers < 0 || size.width < 0 || size.heads < 0)
    throw InvalidArgumentError("{}: {} classes, {} layers, width {}, {} heads; none can be below 0", name,
                               size.classes, size.layers, size.width, size.heads);
  ModelSize complete = size;
  if (complete.classes == 0) complete.classes = classes;
  return builder(s, x, complete);
}

const Model& find_model(const std::string& name) { return registry().at(name); }
std::vector<std::string> registered_models() { return registry().names(); }

}  // namespace kolo::models
