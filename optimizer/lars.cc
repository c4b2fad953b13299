#include <kolo/optimizer/lars.h>

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

const RegisterOptimizer lars("lars", [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
  return std::make_unique<LARSOptimizer>(
      LARSOptions{.learning_rate = settings.learning_rate, .momentum = settings.momentum});
});

}  // namespace

void LARSOptimizer::create_slots(const Scope& s, std::span<const Variable> variables) {
  for (const Variable& variable : variables) create_slot(s, variable, "momentum");
}

Operation LARSOptimizer::apply(const Scope& s, Output gradient, const Variable& variable) {
  if (!detail::adapts(variable))
    return move(s, variable, gradient, scalar(options_.learning_rate, variable, "learning_rate"));
  if (detail::is_part(variable)) {
    waiting_.push_back({s, gradient, variable});
    return gradient;
  }
  return step(s, gradient, variable, global_norm(s, {variable}), global_norm(s, {gradient}));
}

Operation LARSOptimizer::step(const Scope& s, Output gradient, const Variable& variable, Output v_norm,
                              Output gradient_norm) {
  const Output decay = scalar(options_.weight_decay, variable, "weight_decay");
  const Output bound = add(s, gradient_norm, mul(s, decay, v_norm));
  const Output reach = mul(s, scalar(options_.trust_coefficient, variable, "trust_coefficient"), v_norm);
  const Output rate =
      mul(s, scalar(options_.learning_rate, variable, "learning_rate"), detail::trust_ratio(s, reach, bound));
  return move(s, variable, add(s, gradient, mul(s, variable, decay)), rate);
}

Operation LARSOptimizer::move(const Scope& s, const Variable& variable, Output direction, Output rate) {
  const Variable a = find_slot(variable, "momentum");
  const Output kept = mul(s, a, scalar(options_.momentum, variable, "momentum"));
  return assign_sub(s, variable, assign(s, a, add(s, kept, mul(s, direction, rate))));
}

Operation LARSOptimizer::finish(const Scope& s, const std::vector<Operation>& updates) {
  const auto waiting = std::exchange(waiting_, {});
  Outputs parts;
  std::vector<std::string> names;
  for (const Waiting& one : waiting) {
    parts.insert(parts.end(), {one.variable.read(), one.gradient});
    names.insert(names.end(), {one.variable.name() + "/norm", one.variable.name() + "/gradient_norm"});
  }
  const Outputs norms = detail::norms_over_ranks(s, parts, names);
  std::vector<Operation> all = updates;
  for (std::size_t i = 0; i < waiting.size(); ++i)
    all.push_back(
        step(waiting[i].scope, waiting[i].gradient, waiting[i].variable, norms[2 * i], norms[2 * i + 1]));
  return RuleOptimizer::finish(s, all);
}

}  // namespace kolo
