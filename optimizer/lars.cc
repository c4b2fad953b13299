#include <kolo/optimizer/lars.h>

#include <memory>

#include <kolo/core/ops/elementwise.h>
#include <kolo/core/ops/global_norm.h>
#include <kolo/optimizer/detail/trust_ratio.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

const RegisterOptimizer lars("lars", [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
  return std::make_unique<LARSOptimizer>(
      LARSOptions{.learning_rate = settings.learning_rate, .momentum = settings.momentum});
});

}  // namespace

void LARSOptimizer::create_slots(const Scope& s, std::span<const Variable> variables) {
  for (const Variable& variable : variables) create_slot(s, variable, "momentum");
}

Operation LARSOptimizer::apply(const Scope& s, Output gradient, const Variable& variable) {
  Output rate = scalar(options_.learning_rate, variable, "learning_rate"), direction = gradient;
  if (detail::adapts(variable)) {
    const Output decay = scalar(options_.weight_decay, variable, "weight_decay");
    const Output v_norm = global_norm(s, {variable});
    const Output bound = add(s, global_norm(s, {gradient}), mul(s, decay, v_norm));
    const Output reach = mul(s, scalar(options_.trust_coefficient, variable, "trust_coefficient"), v_norm);
    rate = mul(s, rate, detail::trust_ratio(s, reach, bound));
    direction = add(s, gradient, mul(s, variable, decay));
  }
  const Variable a = find_slot(variable, "momentum");
  const Output kept = mul(s, a, scalar(options_.momentum, variable, "momentum"));
  return assign_sub(s, variable, assign(s, a, add(s, kept, mul(s, direction, rate))));
}

}  // namespace kolo
