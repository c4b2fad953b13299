#include <kolo/optimizer/gated_updates.h>

#include <cmath>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/training/rank_state.h>

namespace kolo::detail {
namespace {

// The same gradients, each only where the branch of `branch` is taken: what is computed from them is skipped
// with them. Slices stay slices.
std::vector<GradientPair> in_branch_of(const Scope& branch, std::span<const GradientPair> pairs) {
  std::vector<GradientPair> inside(pairs.begin(), pairs.end());
  for (GradientPair& pair : inside) {
    if (!pair.gradient) continue;
    auto slices = indexed_slices(pair.gradient);
    if (!slices) {
      pair.gradient = identity(branch, pair.gradient);
      continue;
    }
    slices->values = identity(branch, slices->values);
    slices->indices = identity(branch, slices->indices);
    pair.gradient = to_dense(branch, *slices);
  }
  return inside;
}

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
  set_rank_state(s.graph(), counter_, {.optional = true});
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
  set_rank_state(s.graph(), sum, {.kind = RankState::Kind::own});
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

namespace {

Variable state(const Scope& s, const char* name, DType dtype, double first) {
  const Scope top(s.graph());
  const Variable made(top.named(name),
                      fill(top.named(std::string(name) + "/initial_value"), dtype, {}, first),
                      {.trainable = false});
  set_rank_state(s.graph(), made, {.optional = true});
  return made;
}

}  // namespace

LossScaling::LossScaling(const DynamicLossScale& options) : options_(options) {
  const bool ordered = options.minimum > 0 && options.minimum <= options.initial &&
                       options.initial <= options.maximum && std::isfinite(options.maximum);
  if (!ordered)
    throw InvalidArgumentError(
        "the loss scale starts at {}, between {} and {}; it must be positive and within its limits",
        options.initial, options.minimum, options.maximum);
  if (!(options.factor > 1) || options.growth_steps < 1)
    throw InvalidArgumentError(
        "the loss scale changes by a factor of {} after {} good steps; the factor must be above 1, the steps "
        "positive",
        options.factor, options.growth_steps);
}

void LossScaling::make_state(const Scope& s) {
  if (scale_) return;
  scale_ = state(s, "loss_scale", DType::f32, options_.initial);
  good_steps_ = state(s, "loss_scale_good_steps", DType::i64, 0);
}

Output LossScaling::scaled(const Scope& s, Output loss, Output grad_loss) {
  const Scope scope = s.name_scope("loss_scale");
  make_state(scope);
  const Output start = grad_loss ? grad_loss : ones_like(scope, loss);
  return mul(scope, start, cast(scope, scale_, loss.dtype()));
}

std::vector<GradientPair> LossScaling::unscaled_unchecked(const Scope& s,
                                                          std::span<const GradientPair> scaled) {
  const Scope scope = s.name_scope("loss_scale");
  std::vector<GradientPair> pairs(scaled.begin(), scaled.end());
  for (GradientPair& pair : pairs) {
    if (!pair.gradient) continue;
    auto slices = indexed_slices(pair.gradient);
    Output& values = slices ? slices->values : pair.gradient;
    // 16-bit floats have no arithmetic, and f16 does not hold every scale.
    const DType type = values.dtype();
    const DType computed = type == DType::f16 || type == DType::bf16 ? DType::f32 : type;
    const Output whole = cast(scope, values, computed), scale = cast(scope, scale_, computed);
    values = cast(scope, div(scope, whole, scale), type);
    if (slices) pair.gradient = to_dense(scope, *slices);
  }
  return pairs;
}

std::vector<GradientPair> LossScaling::unscaled(const Scope& s, std::span<const GradientPair> scaled) {
  finite_ = is_finite(s, scaled);
  return unscaled_unchecked(s, scaled);
}

// None where there is no gradient.
Output LossScaling::is_finite(const Scope& s, std::span<const GradientPair> pairs) const {
  Outputs values;
  for (const GradientPair& pair : pairs) {
    if (!pair.gradient) continue;
    const auto slices = indexed_slices(pair.gradient);
    values.push_back(slices ? slices->values : pair.gradient);
  }
  return values.empty() ? Output() : all_finite(s.named("all_finite"), values);
}

Operation LossScaling::count_good_step(const Scope& s) {
  const Output count = add(s, good_steps_, fill(s, DType::i64, {}, 1));
  const Output grows =
      greater_equal(s, count, fill(s, DType::i64, {}, static_cast<double>(options_.growth_steps)));
  const Output larger = minimum(s, mul(s, scale_, fill(s, DType::f32, {}, options_.factor)),
                                fill(s, DType::f32, {}, options_.maximum));
  const Output scale = assign(s, scale_, select(s, grows, larger, scale_));
  const Output counted = assign(s, good_steps_, select(s, grows, zeros(s, DType::i64, {}), count));
  return group(s, {scale, counted});
}

Operation LossScaling::in_good_step(const Scope& s, std::span<const GradientPair> reduced,
                                    const std::function<Operation(std::span<const GradientPair>)>& apply) {
  Output finite = std::exchange(finite_, {});
  if (!finite) finite = is_finite(s, reduced);
  if (!finite) return apply(reduced);  // which says what is wrong with no gradients
  const Scope scope = s.name_scope("loss_scale");
  make_state(scope);
  return cond(
      scope, finite,
      [&](const Scope& good) {
        const Operation applied = apply(in_branch_of(good, reduced));
        return group(good, {applied, count_good_step(good)});
      },
      [&](const Scope& bad) {
        const Output smaller = maximum(bad, div(bad, scale_, fill(bad, DType::f32, {}, options_.factor)),
                                       fill(bad, DType::f32, {}, options_.minimum));
        return group(bad,
                     {assign(bad, scale_, smaller), assign(bad, good_steps_, zeros(bad, DType::i64, {}))});
      });
}

}  // namespace kolo::detail
