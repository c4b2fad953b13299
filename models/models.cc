#include <kolo/models/models.h>

#include <fmt/format.h>

#include <map>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo::models {
namespace {

std::map<std::string, Model>& registry() {
  static std::map<std::string, Model> models;
  return models;
}

}  // namespace

RegisterModel::RegisterModel(Model model) {
  const std::string name = model.name;
  if (!registry().emplace(name, std::move(model)).second)
    throw InternalError("model \"{}\" is registered twice", name);
}

const Model& find_model(const std::string& name) {
  const auto found = registry().find(name);
  if (found != registry().end()) return found->second;
  const std::vector<std::string> known = registered_models();
  throw InvalidArgumentError("there is no model \"{}\"{} (known: {})", name, did_you_mean(name, known),
                             fmt::join(known, ", "));
}

std::vector<std::string> registered_models() {
  std::vector<std::string> names;
  for (const auto& [name, model] : registry()) names.push_back(name);
  return names;
}

}  // namespace kolo::models
