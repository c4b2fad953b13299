#include <kolo/optimizer/moving_average.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>

namespace kolo {

ExponentialMovingAverage::ExponentialMovingAverage(double decay) : decay_(decay) {
  if (!(decay >= 0 && decay < 1))
    throw InvalidArgumentError("a moving average with decay {}; it must be from 0 to less than 1", decay);
}

Operation ExponentialMovingAverage::apply(Scope& s, const std::vector<Variable>& variables, Operation step) {
  if (!variables_.empty()) throw InvalidArgumentError("moving averages were asked for twice");
  const Output count = cast(s.control_dependencies({step}), get_or_create_global_step(s).read(), DType::f64);
  const auto number = [&](double value) { return constant(s, Tensor::scalar(value)); };
  const Output early = div(s, add(s, count, number(1)), add(s, count, number(10)));
  const Output moves = sub(s, number(1), minimum(s, early, number(decay_)));
  std::vector<Operation> all{step};
  for (const Variable& variable : variables) {
    const Scope at = s.at_top().colocate_with(Operation(variable.ref()));
    const Output start = variable.initializer().node->input(1);
    const Variable average(at.named(variable.name() + kAverageSuffix), start, {.trainable = false});
    const Scope after = at.control_dependencies({step});
    const Output way = sub(after, average, variable);
    all.push_back(
        Operation(assign_sub(after, average, mul(after, way, cast(after, moves, variable.dtype())))));
    variables_.push_back(variable);
    averages_.push_back(average);
  }
  return group(s.named("averaged_step"), all);
}

Variable ExponentialMovingAverage::average(const Variable& variable) const {
  const auto found = std::find(variables_.begin(), variables_.end(), variable);
  if (found == variables_.end())
    throw InvalidArgumentError("there is no moving average of {}",
                               variable ? variable.name() : "no variable");
  return averages_[static_cast<std::size_t>(found - variables_.begin())];
}

Operation ExponentialMovingAverage::start(Scope& s) const {
  std::vector<Operation> all;
  for (std::size_t i = 0; i < variables_.size(); ++i)
    all.push_back(
        Operation(assign(s.colocate_with(Operation(variables_[i].ref())), averages_[i], variables_[i])));
  return group(s.named("start_averages"), all);
}

Operation ExponentialMovingAverage::swap(Scope& s) const {
  std::vector<Operation> all;
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const Scope at = s.colocate_with(Operation(variables_[i].ref()));
    const Output kept = identity(at, variables_[i]);  // the value of this moment
    all.push_back(Operation(assign(at, variables_[i], averages_[i])));
    all.push_back(Operation(assign(at, averages_[i], kept)));
  }
  return group(s.named("swap_averages"), all);
}

}  // namespace kolo
