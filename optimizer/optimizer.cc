#include <kolo/optimizer/optimizer.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/update_ops.h>
#include <kolo/optimizer/detail/variable_list.h>

namespace kolo {

Operation Optimizer::minimize(Scope& s, Output loss, const MinimizeOptions& options) {
  const std::vector<Variable> variables =
      options.variables.empty() ? trainable_variables(s.graph()) : options.variables;
  const std::vector<GradientPair> pairs = compute_gradients(s, loss, variables);
  if (std::none_of(pairs.begin(), pairs.end(), [](const GradientPair& pair) { return bool(pair.gradient); }))
    throw InvalidArgumentError(
        "No gradients provided for any variable, check your graph for ops that do not support gradients, "
        "between "
        "variables {} and loss {}.",
        detail::variable_list(pairs), loss.name());
  const Variable step = options.global_step ? options.global_step : get_or_create_global_step(s);
  return with_updates(s, apply_gradients(s, pairs, {.global_step = step, .name = options.name}), loss);
}

std::vector<GradientPair> Optimizer::compute_gradients(Scope& s, Output loss,
                                                       std::span<const Variable> variables) {
  if (variables.empty()) throw InvalidArgumentError("No variables to optimize.");
  if (!is_floating(loss.dtype()))
    throw InvalidArgumentError("{}: the loss {} is {}; it must be floating point", name(), loss.name(),
                               loss.dtype());
  Outputs values;
  for (const Variable& variable : variables) {
    if (!is_floating(variable.dtype()))
      throw InvalidArgumentError("{}: variable \"{}\" is {}; only floating point variables can be optimized",
                                 name(), variable.name(), variable.dtype());
    values.push_back(variable.read());
  }
  const Outputs gradients_of_values = gradients(s, {loss}, values);
  std::vector<GradientPair> pairs;
  for (std::size_t i = 0; i < variables.size(); ++i) pairs.push_back({gradients_of_values[i], variables[i]});
  return pairs;
}

std::vector<GradientPair> Optimizer::compute_gradients(Scope& s, Output loss) {
  return compute_gradients(s, loss, trainable_variables(s.graph()));
}

}  // namespace kolo
