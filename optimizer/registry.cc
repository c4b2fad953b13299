#include <kolo/optimizer/registry.h>

#include <fmt/format.h>

#include <map>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo {
namespace {

std::map<std::string, OptimizerFactory>& registry() {
  static std::map<std::string, OptimizerFactory> optimizers;
  return optimizers;
}

}  // namespace

RegisterOptimizer::RegisterOptimizer(std::string name, OptimizerFactory make) {
  if (!registry().emplace(name, make).second)
    throw InternalError("optimizer \"{}\" is registered twice", name);
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const OptimizerSettings& settings) {
  const auto found = registry().find(name);
  if (found != registry().end()) return found->second(settings);
  const std::vector<std::string> known = registered_optimizers();
  throw InvalidArgumentError("there is no optimizer \"{}\"{} (known: {})", name, did_you_mean(name, known),
                             fmt::join(known, ", "));
}

std::vector<std::string> registered_optimizers() {
  std::vector<std::string> names;
  for (const auto& [name, make] : registry()) names.push_back(name);
  return names;
}

}  // namespace kolo
