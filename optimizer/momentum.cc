#include <kolo/optimizer/rules.h>

#include <memory>

#include <kolo/core/ops/training.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

const RegisterOptimizer momentum("momentum", {.learning_rate = 0.02, .takes_momentum = true},
                                 [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
                                   return std::make_unique<MomentumOptimizer>(settings.learning_rate,
                                                                              settings.momentum);
                                 });
const RegisterOptimizer nesterov("nesterov", {.learning_rate = 0.02, .takes_momentum = true},
                                 [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
                                   return std::make_unique<MomentumOptimizer>(
                                       settings.learning_rate, settings.momentum, /*use_nesterov=*/true);
                                 });

}  // namespace

void MomentumOptimizer::create_slots(const Scope& s, std::span<const Variable> variables) {
  for (const Variable& variable : variables) create_slot(s, variable, "momentum");
}

Operation MomentumOptimizer::apply(const Scope& s, Output gradient, const Variable& variable) {
  return apply_update(s,
                      {.rule = use_nesterov_ ? "Nesterov" : "Momentum",
                       .variable = variable,
                       .slots = {find_slot(variable, "momentum")},
                       .scalars = {scalar(learning_rate_, variable, "learning_rate"),
                                   scalar(momentum_, variable, "momentum")}},
                      gradient);
}

}  // namespace kolo
