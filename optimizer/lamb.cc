#include <kolo/optimizer/lamb.h>

#include <memory>

#include <kolo/core/ops/elementwise.h>
#include <kolo/core/ops/global_norm.h>
#include <kolo/optimizer/detail/trust_ratio.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

const RegisterOptimizer lamb("lamb", [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
  return std::make_unique<LAMBOptimizer>(settings.learning_rate);
});

}  // namespace

LAMBOptimizer::LAMBOptimizer(LAMBOptions options)
    : AdamOptimizer("LAMB", {.learning_rate = options.learning_rate,
                             .beta1 = options.beta1,
                             .beta2 = options.beta2,
                             .epsilon = options.epsilon}),
      weight_decay_(options.weight_decay) {}

Operation LAMBOptimizer::apply(const Scope& s, Output gradient, const Variable& variable) {
  const Output one = scalar(1.0, variable, "one");

  const auto mean = [&](const Variable& slot, Output of, Output beta, Output power) {
    const Output change = mul(s, sub(s, of, slot), sub(s, one, beta));
    return div(s, assign_add(s, slot, change), sub(s, one, power));
  };
  const Outputs numbers = scalars(variable);  // powers, learning rate, betas, epsilon
  const Output m = mean(find_slot(variable, "m"), gradient, numbers[3], numbers[0]);
  const Output w = mean(find_slot(variable, "v"), square(s, gradient), numbers[4], numbers[1]);
  Output direction = div(s, m, add(s, sqrt(s, w), numbers[5])), rate = numbers[2];
  if (detail::adapts(variable)) {
    direction = add(s, direction, mul(s, variable, scalar(weight_decay_, variable, "weight_decay")));
    rate = mul(s, rate, detail::trust_ratio(s, global_norm(s, {variable}), global_norm(s, {direction})));
  }
  return assign_sub(s, variable, mul(s, direction, rate));
}

}  // namespace kolo
