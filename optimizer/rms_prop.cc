#include <kolo/optimizer/rules.h>

#include <memory>

#include <kolo/core/ops/training.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

const RegisterOptimizer rms_prop("rmsprop", {},
                                 [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
                                   return std::make_unique<RMSPropOptimizer>(settings.learning_rate);
                                 });

}  // namespace

void RMSPropOptimizer::create_slots(const Scope& s, std::span<const Variable> variables) {
  for (const Variable& variable : variables) {
    create_slot(s, variable, "rms", 1);
    if (options_.centered) create_slot(s, variable, "mg");
    create_slot(s, variable, "momentum");
  }
}

Operation RMSPropOptimizer::apply(const Scope& s, Output gradient, const Variable& variable) {
  VariableUpdate update = {
      .rule = options_.centered ? "CenteredRMSProp" : "RMSProp",
      .variable = variable,
      .slots = {find_slot(variable, "rms")},
      .scalars = {scalar(options_.learning_rate, variable, "learning_rate"),
                  scalar(options_.decay, variable, "decay"), scalar(options_.momentum, variable, "momentum"),
                  scalar(options_.epsilon, variable, "epsilon")}};
  if (options_.centered) update.slots.push_back(find_slot(variable, "mg"));
  update.slots.push_back(find_slot(variable, "momentum"));
  return apply_update(s, update, gradient);
}

}  // namespace kolo
