#include <kolo/optimizer/registry.h>

#include <kolo/core/base/registry.h>

namespace kolo {
namespace {

struct Entry {
  OptimizerTraits traits;
  OptimizerFactory make;
};

Registry<Entry>& registry() {
  static Registry<Entry> optimizers("optimizer");
  return optimizers;
}

}  // namespace

RegisterOptimizer::RegisterOptimizer(const std::string& name, OptimizerTraits traits, OptimizerFactory make,
                                     SourceLine place) {
  registry().add(name, {traits, make}, place);
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const OptimizerSettings& settings) {
  return registry().at(name).make(settings);
}

OptimizerTraits optimizer_traits(const std::string& name) { return registry().at(name).traits; }

std::vector<std::string> registered_optimizers() { return registry().names(); }

}  // namespace kolo
