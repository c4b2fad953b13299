#include <kolo/optimizer/rule_optimizer.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/partitioned_variables.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/optimizer/optimizer_internal.h>

namespace kolo {

Hyperparameter::Hyperparameter(Output value) : value_(value) {
  if (!value || !is_floating(value.dtype()) || !value.shape().is_compatible_with(Shape()))
    throw InvalidArgumentError("a number of an optimizer must be a floating point scalar; {} is {} {}",
                               value ? value.name() : "the empty output",
                               value ? name(value.dtype()) : "nothing",
                               value ? value.shape() : Shape::unknown_rank());
}

std::optional<double> Hyperparameter::number() const {
  const double* number = std::get_if<double>(&value_);
  return number == nullptr ? std::nullopt : std::optional<double>(*number);
}

Output Hyperparameter::in_graph(const Scope& s, DType dtype, const std::string& name) const {
  const Output* output = std::get_if<Output>(&value_);
  return output != nullptr ? *output : scalar(s, dtype, name);
}

Output Hyperparameter::scalar(const Scope& s, DType dtype, const std::string& name) const {
  if (const Output* output = std::get_if<Output>(&value_))
    return output->dtype() == dtype ? *output : cast(s.named(name), *output, dtype);
  const double number = std::get<double>(value_);
  // Constants cost a step nothing; the other types are rare.
  if (dtype == DType::f32) return constant(s.named(name), Tensor::scalar(static_cast<float>(number)));
  if (dtype == DType::f64) return constant(s.named(name), Tensor::scalar(number));
  return fill(s.named(name), dtype, {}, number);
}

namespace {

std::vector<GradientPair> present(std::span<const GradientPair> gradients) {
  if (gradients.empty()) throw InvalidArgumentError("No variables provided.");
  std::vector<GradientPair> pairs;
  for (const GradientPair& pair : gradients) {
    if (!pair.gradient) continue;
    detail::check_alike(pair);
    pairs.push_back(pair);
  }
  if (pairs.empty())
    throw InvalidArgumentError("No gradients provided for any variable: {}.",
                               detail::variable_list(gradients));
  return pairs;
}

// Outside the scopes in which the step is built: what a checkpoint calls the state follows from the
// variable's name alone.
Scope state_scope(const Scope& s, const Variable& neighbour) {
  return Scope(s.graph()).colocate_with(neighbour.ref());
}

// A checkpoint of a training by another optimizer lacks it: the weights go on, and this begins anew.
Variable state_variable(const Scope& s, Output initial) {
  const Variable made(s, initial, {.trainable = false});
  set_rank_state(s.graph(), made, {.optional = true});
  return made;
}

}  // namespace

Operation RuleOptimizer::apply_gradients(Scope& s, std::span<const GradientPair> gradients,
                                         const ApplyOptions& options) {
  const std::vector<GradientPair> pairs = present(gradients);
  std::vector<Variable> variables;
  for (const GradientPair& pair : pairs) variables.push_back(pair.variable);

  const Scope scope = s.name_scope(options.name.empty() ? name() : options.name);
  shared_.emplace(scope);
  create_slots(scope, variables);
  std::vector<Operation> updates;
  for (const GradientPair& pair : pairs) {
    const Scope named = scope.name_scope("update_" + pair.variable.name());
    updates.push_back(apply(named.colocate_with(pair.variable.ref()), pair.gradient, pair.variable));
  }
  const Operation updated = finish(scope, updates);
  shared_.reset();
  if (!options.global_step) return updated;

  const Variable& step = options.global_step;
  const Scope after = scope.control_dependencies({updated});
  return assign_add(after.named("count"), step, fill(after.named("one"), step.dtype(), {}, 1));
}

Variable RuleOptimizer::find_slot(const Variable& variable, const std::string& slot) const {
  const auto found = slots_.find({slot, variable.ref().node});
  return found == slots_.end() ? Variable() : found->second;
}

Operation RuleOptimizer::finish(const Scope& s, const std::vector<Operation>& updates) {
  return group(s.named("update"), updates);
}

Output RuleOptimizer::scalar(const Hyperparameter& number, const Variable& variable,
                             const std::string& name) {
  if (!shared_) throw InternalError("{}: scalars are made while gradients are applied", this->name());
  Output& made = shared_->scalars[{name, variable.dtype()}];
  if (!made) made = number.scalar(shared_->scope, variable.dtype(), name);
  return made;
}

Variable RuleOptimizer::create_slot(const Scope& s, const Variable& variable, const std::string& slot,
                                    double initial_value) {
  Variable& made = slots_[{slot, variable.ref().node}];
  if (made) return made;
  const Scope beside = state_scope(s, variable);
  const std::string name = variable.name() + "/" + this->name();
  const Output initial =
      fill(beside.named(name + "/initial_value"), variable.dtype(), variable.shape(), initial_value);
  made = state_variable(beside.named(name), initial);
  if (auto slice = variable_slice(variable)) {  // the slot of a part is that part of the whole's slot
    slice->whole += made.name().substr(variable.name().size());
    set_variable_slice(s.graph(), made, *slice);
  }
  return made;
}

Variable RuleOptimizer::create_scalar(const Scope& s, const Variable& neighbour, const std::string& name,
                                      const Hyperparameter& initial_value) {
  Variable& made = scalars_[name];
  if (made) return made;
  const Scope beside = state_scope(s, neighbour);
  const Output initial = initial_value.scalar(beside, neighbour.dtype(), name + "/initial_value");
  return made = state_variable(beside.named(name), initial);
}

}  // namespace kolo
