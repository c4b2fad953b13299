#include <kolo/optimizer/adam.h>

#include <algorithm>
#include <memory>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/elementwise.h>
#include <kolo/core/ops/training_ops.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

const RegisterOptimizer adam("adam", [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
  return std::make_unique<AdamOptimizer>(settings.learning_rate);
});

void check_beta(const char* name, double beta) {
  if (!(beta >= 0 && beta < 1))
    throw InvalidArgumentError("Adam: {} is {}; it must be in [0, 1)", name, beta);
}

Operation multiply(const Scope& s, const Variable& power, double beta) {
  return assign(s, power, mul(s, power, Hyperparameter(beta).scalar(s, power.dtype(), "beta")));
}

}  // namespace

AdamOptimizer::AdamOptimizer(AdamOptions options) : RuleOptimizer("Adam"), options_(options) {
  check_beta("beta1", options.beta1);
  check_beta("beta2", options.beta2);
  if (!(options.epsilon >= 0))
    throw InvalidArgumentError("Adam: epsilon is {}; it must not be negative", options.epsilon);
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

Operation AdamOptimizer::apply_dense(const Scope& s, Output gradient, const Variable& variable) {
  const auto scalar = [&](const Hyperparameter& number, const char* name) {
    return number.scalar(s, variable.dtype(), name);
  };
  const AdamScalars scalars = {.beta1_power = scalar(beta1_power_.read(), "beta1_power"),
                               .beta2_power = scalar(beta2_power_.read(), "beta2_power"),
                               .learning_rate = scalar(options_.learning_rate, "learning_rate"),
                               .beta1 = scalar(options_.beta1, "beta1"),
                               .beta2 = scalar(options_.beta2, "beta2"),
                               .epsilon = scalar(options_.epsilon, "epsilon")};
  return apply_adam(s, variable, find_slot(variable, "m"), find_slot(variable, "v"), scalars, gradient);
}

Operation AdamOptimizer::finish(const Scope& s, const std::vector<Operation>& updates) {
  const Scope after = s.control_dependencies(updates);
  const Operation beta1 = multiply(after.name_scope("beta1_power"), beta1_power_, options_.beta1);
  const Operation beta2 = multiply(after.name_scope("beta2_power"), beta2_power_, options_.beta2);
  return group(s.named("update"), {beta1, beta2});
}

}  // namespace kolo
