#include <kolo/optimizer/optimizer.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/variables.h>
#include <kolo/optimizer/optimizer_internal.h>

namespace kolo {

namespace detail {

std::string variable_list(std::span<const GradientPair> pairs) {
  std::string text;
  for (const GradientPair& pair : pairs) text += (text.empty() ? "\"" : ", \"") + pair.variable.name() + '"';
  return '[' + text + ']';
}

void check_alike(const GradientPair& pair) {
  const Output& gradient = pair.gradient;
  const Variable& variable = pair.variable;
  if (gradient.dtype() == variable.dtype() && gradient.shape().is_compatible_with(variable.shape())) return;
  throw InvalidArgumentError("the gradient {} is {} {}, but its variable \"{}\" is {} {}; both must be alike",
                             gradient.name(), gradient.dtype(), gradient.shape(), variable.name(),
                             variable.dtype(), variable.shape());
}

}  // namespace detail

Operation Optimizer::minimize(Scope& s, Output loss, const MinimizeOptions& options) {
  const std::vector<Variable> variables =
      options.variables.empty() ? trainable_variables(s.graph()) : options.variables;
  const std::vector<GradientPair> pairs = compute_gradients(s, loss, variables, options.gradients);
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
                                                       std::span<const Variable> variables,
                                                       const ComputeGradientsOptions& options) {
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
  const Outputs gradients_of_values = gradients(s, {loss}, values, {options.grad_loss},
                                                {.colocate_with_ops = options.colocate_gradients_with_ops});
  std::vector<GradientPair> pairs;
  for (std::size_t i = 0; i < variables.size(); ++i) pairs.push_back({gradients_of_values[i], variables[i]});
  return options.gate == Gate::graph ? gated(s, std::move(pairs)) : pairs;
}

std::vector<GradientPair> Optimizer::gated(const Scope& s, std::vector<GradientPair> pairs) {
  Outputs values;
  for (const GradientPair& pair : pairs) {
    if (!pair.gradient) continue;
    const auto slices = indexed_slices(pair.gradient);
    values.push_back(slices ? slices->values : pair.gradient);
  }
  const Scope gate = s.name_scope("gate_gradients");
  if (!values.empty()) values = tuple(gate, values);
  std::size_t next = 0;
  for (GradientPair& pair : pairs) {
    if (!pair.gradient) continue;
    auto slices = indexed_slices(pair.gradient);
    pair.gradient = values[next++];
    if (!slices) continue;
    slices->values = pair.gradient;
    pair.gradient = to_dense(gate, *slices);
  }
  return pairs;
}

std::vector<GradientPair> Optimizer::compute_gradients(Scope& s, Output loss) {
  return compute_gradients(s, loss, trainable_variables(s.graph()));
}

}  // namespace kolo
