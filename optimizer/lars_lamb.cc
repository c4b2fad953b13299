#include <kolo/optimizer/rules.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/graph/group_ops.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>
#include <kolo/optimizer/registry.h>

namespace kolo {
namespace {

const RegisterOptimizer lars("lars", {.learning_rate = 1, .decays_weights = true, .takes_momentum = true},
                             [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
                               LARSOptions options{.learning_rate = settings.learning_rate,
                                                   .momentum = settings.momentum};
                               if (settings.weight_decay) options.weight_decay = *settings.weight_decay;
                               return std::make_unique<LARSOptimizer>(options);
                             });

const RegisterOptimizer lamb("lamb", {.learning_rate = 0.01, .decays_weights = true},
                             [](const OptimizerSettings& settings) -> std::unique_ptr<Optimizer> {
                               LAMBOptions options{.learning_rate = settings.learning_rate};
                               if (settings.weight_decay) options.weight_decay = *settings.weight_decay;
                               return std::make_unique<LAMBOptimizer>(options);
                             });

// A range of the elements of another variable.
bool is_part(const Variable& variable) { return whole_variable(variable) != variable; }

// False for biases and scales, which are short for other reasons than weights are. Of a part, its whole is
// asked.
bool adapts(const Variable& variable) { return whole_variable(variable).shape().rank() > 1; }

// a / b for scalars, 1 where one of them is 0.
Output trust_ratio(const Scope& s, Output a, Output b) {
  const Output zero = zeros_like(s, a);
  const Output both = logical_and(s, greater(s, a, zero), greater(s, b, zero));
  return select(s, both, div(s, a, b), ones_like(s, a));
}

// The norms of tensors of which each rank has the elements of a part, over all ranks, each of its tensor's
// type. One reduction for all of them; nothing for none. names: one each, the same on all ranks.
Outputs norms_over_ranks(const Scope& s, const Outputs& parts, const std::vector<std::string>& names) {
  if (parts.empty()) return {};
  const Scope scope = s.name_scope("norms");
  Outputs squares;
  for (const Output& part : parts)
    squares.push_back(square(scope, cast(scope, global_norm(scope, {part}), DType::f64)));
  Outputs norms = group_allreduce(scope, squares, names, {.op = ReduceOp::sum});
  for (std::size_t i = 0; i < parts.size(); ++i)
    norms[i] = cast(scope, sqrt(scope, norms[i]), parts[i].dtype());
  return norms;
}

}  // namespace

void detail::WaitingParts::add(const Scope& s, Output step, const Variable& variable) {
  parts_.push_back({s, step, variable});
}

std::vector<Operation> detail::WaitingParts::finish(const Scope& s, const std::string& norm,
                                                    const Step& step) {
  const auto waiting = std::exchange(parts_, {});
  Outputs parts;
  std::vector<std::string> names;
  for (const Part& one : waiting) {
    parts.insert(parts.end(), {one.variable.read(), one.step});
    names.insert(names.end(), {one.variable.name() + "/norm", one.variable.name() + "/" + norm});
  }
  const Outputs norms = norms_over_ranks(s, parts, names);
  std::vector<Operation> updates;
  for (std::size_t i = 0; i < waiting.size(); ++i)
    updates.push_back(
        step(waiting[i].scope, waiting[i].step, waiting[i].variable, norms[2 * i], norms[2 * i + 1]));
  return updates;
}

void LARSOptimizer::create_slots(const Scope& s, std::span<const Variable> variables) {
  for (const Variable& variable : variables) create_slot(s, variable, "momentum");
}

Operation LARSOptimizer::apply(const Scope& s, Output gradient, const Variable& variable) {
  if (!adapts(variable))
    return move(s, variable, gradient, scalar(options_.learning_rate, variable, "learning_rate"));
  if (is_part(variable)) {
    waiting_.add(s, gradient, variable);
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
      mul(s, scalar(options_.learning_rate, variable, "learning_rate"), trust_ratio(s, reach, bound));
  return move(s, variable, add(s, gradient, mul(s, variable, decay)), rate);
}

Operation LARSOptimizer::move(const Scope& s, const Variable& variable, Output direction, Output rate) {
  const Variable a = find_slot(variable, "momentum");
  const Output kept = mul(s, a, scalar(options_.momentum, variable, "momentum"));
  return assign_sub(s, variable, assign(s, a, add(s, kept, mul(s, direction, rate))));
}

Operation LARSOptimizer::finish(const Scope& s, const std::vector<Operation>& updates) {
  std::vector<Operation> all = updates;
  const auto last =
      waiting_.finish(s, "gradient_norm",
                      [this](const Scope& at, Output of, const Variable& variable, Output v_norm,
                             Output norm) { return step(at, of, variable, v_norm, norm); });
  all.insert(all.end(), last.begin(), last.end());
  return RuleOptimizer::finish(s, all);
}

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
  if (!adapts(variable)) return assign_sub(s, variable, mul(s, direction, numbers[2]));
  direction = add(s, direction, mul(s, variable, scalar(weight_decay_, variable, "weight_decay")));
  if (is_part(variable)) {
    waiting_.add(s, direction, variable);
    return direction;
  }
  return step(s, direction, variable, global_norm(s, {variable}), global_norm(s, {direction}));
}

Operation LAMBOptimizer::step(const Scope& s, Output direction, const Variable& variable, Output v_norm,
                              Output direction_norm) {
  const Output rate =
      mul(s, scalars(variable)[2], trust_ratio(s, v_norm, direction_norm));  // the learning rate
  return assign_sub(s, variable, mul(s, direction, rate));
}

Operation LAMBOptimizer::finish(const Scope& s, const std::vector<Operation>& updates) {
  std::vector<Operation> all = updates;
  const auto last =
      waiting_.finish(s, "direction_norm",
                      [this](const Scope& at, Output of, const Variable& variable, Output v_norm,
                             Output norm) { return step(at, of, variable, v_norm, norm); });
  all.insert(all.end(), last.begin(), last.end());
  return AdamOptimizer::finish(s, all);
}

}  // namespace kolo
