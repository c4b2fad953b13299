#include <kolo/optimizer/rules.h>

#include <memory>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/training.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

const RegisterOptimizer adagrad("adagrad", {.learning_rate = 0.02},
                                [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
                                  return std::make_unique<AdagradOptimizer>(settings.learning_rate);
                                });

}  // namespace

AdagradOptimizer::AdagradOptimizer(Hyperparameter learning_rate, double initial_accumulator_value)
    : RuleOptimizer("Adagrad"),
      learning_rate_(learning_rate),
      initial_accumulator_value_(initial_accumulator_value) {
  if (!(initial_accumulator_value > 0))  // so written that it refuses NaN too
    throw InvalidArgumentError("initial_accumulator_value must be positive: {}", initial_accumulator_value);
}

void AdagradOptimizer::create_slots(const Scope& s, std::span<const Variable> variables) {
  for (const Variable& variable : variables)
    create_slot(s, variable, "accumulator", initial_accumulator_value_);
}

Operation AdagradOptimizer::apply(const Scope& s, Output gradient, const Variable& variable) {
  return apply_update(s,
                      {.rule = "Adagrad",
                       .variable = variable,
                       .slots = {find_slot(variable, "accumulator")},
                       .scalars = {scalar(learning_rate_, variable, "learning_rate")}},
                      gradient);
}

}  // namespace kolo
