#include <kolo/optimizer/lamb.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/optimizer/registry.h>
#include <kolo/optimizer/trust_ratio.h>

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
  Output direction = div(s, m, add(s, sqrt(s, w), numbers[5]));
  if (!detail::adapts(variable)) return assign_sub(s, variable, mul(s, direction, numbers[2]));
  direction = add(s, direction, mul(s, variable, scalar(weight_decay_, variable, "weight_decay")));
  if (detail::is_part(variable)) {
    waiting_.push_back({s, direction, variable});
    return direction;
  }
  return step(s, direction, variable, global_norm(s, {variable}), global_norm(s, {direction}));
}

Operation LAMBOptimizer::step(const Scope& s, Output direction, const Variable& variable, Output v_norm,
                              Output direction_norm) {
  const Output rate =
      mul(s, scalars(variable)[2], detail::trust_ratio(s, v_norm, direction_norm));  // the learning rate
  return assign_sub(s, variable, mul(s, direction, rate));
}

Operation LAMBOptimizer::finish(const Scope& s, const std::vector<Operation>& updates) {
  const auto waiting = std::exchange(waiting_, {});
  Outputs parts;
  std::vector<std::string> names;
  for (const Waiting& one : waiting) {
    parts.insert(parts.end(), {one.variable.read(), one.direction});
    names.insert(names.end(), {one.variable.name() + "/norm", one.variable.name() + "/direction_norm"});
  }
  const Outputs norms = detail::norms_over_ranks(s, parts, names);
  std::vector<Operation> all = updates;
  for (std::size_t i = 0; i < waiting.size(); ++i)
    all.push_back(
        step(waiting[i].scope, waiting[i].direction, waiting[i].variable, norms[2 * i], norms[2 * i + 1]));
  return AdamOptimizer::finish(s, all);
}

}  // namespace kolo
