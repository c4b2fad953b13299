#include <kolo/optimizer/rules.h>

#include <memory>

#include <kolo/core/ops/training.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

const RegisterOptimizer lion("lion", {.learning_rate = 0.0003, .decays_weights = true},
                             [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
                               LionOptions options{.learning_rate = settings.learning_rate};
                               if (settings.weight_decay) options.weight_decay = *settings.weight_decay;
                               return std::make_unique<LionOptimizer>(options);
                             });

}  // namespace

void LionOptimizer::create_slots(const Scope& s, std::span<const Variable> variables) {
  for (const Variable& variable : variables) create_slot(s, variable, "m");
}

Operation LionOptimizer::apply(const Scope& s, Output gradient, const Variable& variable) {
  return apply_update(
      s,
      {.rule = "Lion",
       .variable = variable,
       .slots = {find_slot(variable, "m")},
       .scalars = {scalar(options_.learning_rate, variable, "learning_rate"),
                   scalar(options_.beta1, variable, "beta1"), scalar(options_.beta2, variable, "beta2"),
                   scalar(options_.weight_decay, variable, "weight_decay")}},
      gradient);
}

}  // namespace kolo
