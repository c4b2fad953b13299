#include <kolo/optimizer/rules.h>

#include <memory>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/training.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

// With the usual 0.1 the first step forgets the weights that a deep network starts from: they are made anew
// of the gradients alone.
const RegisterOptimizer ftrl("ftrl", {.learning_rate = 0.005},
                             [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
                               return std::make_unique<FtrlOptimizer>(
                                   FtrlOptions{.learning_rate = settings.learning_rate,
                                               .initial_accumulator_value = 1e-10});
                             });

void check_not_negative(const char* name, const Hyperparameter& value) {
  if (const auto number = value.number(); number && !(*number >= 0))
    throw InvalidArgumentError("Ftrl: {} is {}; it must not be negative", name, *number);
}

}  // namespace

FtrlOptimizer::FtrlOptimizer(FtrlOptions options) : RuleOptimizer("Ftrl"), options_(options) {
  if (!(options_.initial_accumulator_value > 0))  // so written that it refuses NaN too
    throw InvalidArgumentError("initial_accumulator_value must be positive: {}",
                               options_.initial_accumulator_value);
  check_not_negative("l1", options_.l1);
  check_not_negative("l2", options_.l2);
  check_not_negative("l2_shrinkage", options_.l2_shrinkage);
  if (const auto power = options_.learning_rate_power.number(); power && !(*power <= 0))
    throw InvalidArgumentError("Ftrl: learning_rate_power is {}; it must not be positive", *power);
}

void FtrlOptimizer::create_slots(const Scope& s, std::span<const Variable> variables) {
  for (const Variable& variable : variables) {
    create_slot(s, variable, "accum", options_.initial_accumulator_value);
    create_slot(s, variable, "linear");
  }
}

Operation FtrlOptimizer::apply(const Scope& s, Output gradient, const Variable& variable) {
  return apply_update(s,
                      {.rule = "Ftrl",
                       .variable = variable,
                       .slots = {find_slot(variable, "accum"), find_slot(variable, "linear")},
                       .scalars = {scalar(options_.learning_rate, variable, "learning_rate"),
                                   scalar(options_.l1, variable, "l1"), scalar(options_.l2, variable, "l2"),
                                   scalar(options_.l2_shrinkage, variable, "l2_shrinkage"),
                                   scalar(options_.learning_rate_power, variable, "learning_rate_power")}},
                      gradient);
}

}  // namespace kolo
