#include <kolo/optimizer/rules.h>

#include <algorithm>
#include <memory>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/training.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

const RegisterOptimizer adam("adam", {}, [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
  return std::make_unique<AdamOptimizer>(settings.learning_rate);
});
const RegisterOptimizer adam_w("adamw", {.decays_weights = true},
                               [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
                                 AdamWOptions options{.learning_rate = settings.learning_rate};
                                 if (settings.weight_decay) options.weight_decay = *settings.weight_decay;
                                 return std::make_unique<AdamWOptimizer>(options);
                               });

void check_beta(const std::string& optimizer, const char* name, const Hyperparameter& beta) {
  if (const auto number = beta.number(); number && !(*number >= 0 && *number < 1))
    throw InvalidArgumentError("{}: {} is {}; it must be in [0, 1)", optimizer, name, *number);
}

}  // namespace

AdamOptimizer::AdamOptimizer(std::string name, AdamOptions options)
    : RuleOptimizer(std::move(name)), options_(options) {
  check_beta(this->name(), "beta1", options_.beta1);
  check_beta(this->name(), "beta2", options_.beta2);
  if (const auto epsilon = options_.epsilon.number(); epsilon && !(*epsilon >= 0))
    throw InvalidArgumentError("{}: epsilon is {}; it must not be negative", this->name(), *epsilon);
}

void AdamOptimizer::create_slots(const Scope& s, std::span<const Variable> variables) {
  // The first by name, so that the powers' place does not depend on the order in which the model was built.
  const Variable& first =
      *std::min_element(variables.begin(), variables.end(),
                        [](const Variable& a, const Variable& b) { return a.name() < b.name(); });
  beta1_power_ = create_scalar(s, first, "beta1_power", options_.beta1);
  beta2_power_ = create_scalar(s, first, "beta2_power", options_.beta2);
  for (const Variable& variable : variables) {
    create_slot(s, variable, "m");
    create_slot(s, variable, "v");
  }
}

Outputs AdamOptimizer::scalars(const Variable& variable) {
  return {scalar(beta1_power_.read(), variable, "beta1_power"),
          scalar(beta2_power_.read(), variable, "beta2_power"),
          scalar(options_.learning_rate, variable, "learning_rate"),
          scalar(options_.beta1, variable, "beta1"),
          scalar(options_.beta2, variable, "beta2"),
          scalar(options_.epsilon, variable, "epsilon")};
}

Operation AdamOptimizer::apply(const Scope& s, Output gradient, const Variable& variable) {
  return apply_update(s,
                      {.rule = "Adam",
                       .variable = variable,
                       .slots = {find_slot(variable, "m"), find_slot(variable, "v")},
                       .scalars = scalars(variable)},
                      gradient);
}

Operation AdamOptimizer::finish(const Scope& s, const std::vector<Operation>& updates) {
  const Scope after = s.control_dependencies(updates);
  const auto multiply = [&](const Variable& power, const Hyperparameter& beta, const std::string& name) {
    const Scope scope = after.name_scope(name + "_power");
    return assign(scope, power, mul(scope, power, scalar(beta, power, name)));
  };
  const Output beta1 = multiply(beta1_power_, options_.beta1, "beta1");
  const Output beta2 = multiply(beta2_power_, options_.beta2, "beta2");
  return group(s.named("update"), {beta1, beta2});
}

AdamWOptimizer::AdamWOptimizer(AdamWOptions options)
    : AdamOptimizer("AdamW", {.learning_rate = options.learning_rate,
                              .beta1 = options.beta1,
                              .beta2 = options.beta2,
                              .epsilon = options.epsilon}),
      weight_decay_(options.weight_decay) {}

Operation AdamWOptimizer::apply(const Scope& s, Output gradient, const Variable& variable) {
  Outputs numbers = scalars(variable);
  numbers.push_back(scalar(weight_decay_, variable, "weight_decay"));
  return apply_update(s,
                      {.rule = "AdamW",
                       .variable = variable,
                       .slots = {find_slot(variable, "m"), find_slot(variable, "v")},
                       .scalars = std::move(numbers)},
                      gradient);
}

}  // namespace kolo
