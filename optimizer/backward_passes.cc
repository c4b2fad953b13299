#include <kolo/optimizer/backward_passes.h>

#include <utility>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/optimizer/gated_gradients.h>

namespace kolo::detail {
namespace {

// Part of one side of a condition whose nodes are made at several places.
Scope branch(const Scope& s, Output condition, bool taken) {
  const Operation guard = s.add("BranchGuard", {condition}, {{"taken", taken}});
  return s.in_branch(guard);
}

}  // namespace

// State stands outside the scopes in which the step is built, as an optimizer's slots do.
void BackwardPasses::make_counter(const Scope& s) {
  const Scope top(s.graph());
  counter_ =
      Variable(top.named("backward_passes"),
               zeros(top.named("backward_passes/initial_value"), DType::i64, {}), {.trainable = false});
  mark_optional(s.graph(), counter_);
  is_last_ = equal(s.named("is_last"), counter_, fill(s, DType::i64, {}, passes_ - 1));
  when_last_.push_back(assign(branch(s, is_last_, true), counter_, zeros(s, DType::i64, {})));
  otherwise_.push_back(assign_add(branch(s, is_last_, false), counter_, fill(s, DType::i64, {}, 1)));
}

Variable BackwardPasses::make_sum(const Scope& s, const Variable& variable) {
  const Scope beside = Scope(s.graph()).colocate_with(variable.ref());
  const std::string name = variable.name() + "/gradient_sum";
  const Variable sum(beside.named(name),
                     zeros(beside.named(name + "/initial_value"), variable.dtype(), variable.shape()),
                     {.trainable = false});
  mark_own_of_rank(s.graph(), sum);
  return sum;
}

std::vector<GradientPair> BackwardPasses::sum(const Scope& s, std::span<const GradientPair> local) {
  const Scope scope = s.name_scope("backward_passes");
  if (!counter_) make_counter(scope);
  const Scope last = branch(scope, is_last_, true), others = branch(scope, is_last_, false);
  std::vector<GradientPair> sums(local.begin(), local.end());
  for (GradientPair& pair : sums) {
    if (!pair.gradient) continue;
    const Variable sum = make_sum(scope, pair.variable);
    const Output whole = add(last, sum, pair.gradient);
    otherwise_.push_back(assign_add(others, sum, pair.gradient));
    when_last_.push_back(assign(last, sum, zeros(scope, sum.dtype(), sum.shape())));
    pair.gradient = average_ ? div(last, whole, fill(scope, sum.dtype(), {}, passes_)) : whole;
  }
  return sums;
}

Operation BackwardPasses::in_last_pass(const Scope& s, std::span<const GradientPair> reduced,
                                       const std::function<Operation(std::span<const GradientPair>)>& apply) {
  const auto when_last = std::exchange(when_last_, {});
  const auto otherwise = std::exchange(otherwise_, {});
  return cond(
      s, is_last_,
      [&](const Scope& inside) {
        std::vector<Operation> all = when_last;
        all.push_back(apply(in_branch_of(inside, reduced)));
        return group(inside, all);
      },
      [&](const Scope& inside) { return group(inside, otherwise); });
}

}  // namespace kolo::detail
