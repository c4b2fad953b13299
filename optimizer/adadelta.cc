#include <kolo/optimizer/rules.h>

#include <memory>

#include <kolo/core/ops/training.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

const RegisterOptimizer adadelta("adadelta", {.learning_rate = 1},
                                 [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
                                   return std::make_unique<AdadeltaOptimizer>(settings.learning_rate);
                                 });

}  // namespace

void AdadeltaOptimizer::create_slots(const Scope& s, std::span<const Variable> variables) {
  for (const Variable& variable : variables) {
    create_slot(s, variable, "accum");
    create_slot(s, variable, "accum_update");
  }
}

Operation AdadeltaOptimizer::apply(const Scope& s, Output gradient, const Variable& variable) {
  return apply_update(
      s,
      {.rule = "Adadelta",
       .variable = variable,
       .slots = {find_slot(variable, "accum"), find_slot(variable, "accum_update")},
       .scalars = {scalar(options_.learning_rate, variable, "learning_rate"),
                   scalar(options_.rho, variable, "rho"), scalar(options_.epsilon, variable, "epsilon")}},
      gradient);
}

}  // namespace kolo
