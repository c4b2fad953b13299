#include <kolo/optimizer/registry.h>

#include <kolo/core/base/registry.h>

namespace kolo {
namespace {

Registry<OptimizerFactory>& registry() {
  static Registry<OptimizerFactory> optimizers("optimizer");
  return optimizers;
}

}  // namespace

RegisterOptimizer::RegisterOptimizer(const std::string& name, OptimizerFactory make, SourceLine place) {
  registry().add(name, make, place);
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const OptimizerSettings& settings) {
  return registry().at(name)(settings);
}

std::vector<std::string> registered_optimizers() { return registry().names(); }

}  // namespace kolo
