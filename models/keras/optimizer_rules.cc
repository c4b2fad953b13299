// Keras' update rules as kolo's.
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/training.h>
#include <kolo/models/keras/optimizers_internal.h>
#include <kolo/optimizer/clipping.h>
#include <kolo/optimizer/rules.h>

namespace kolo::keras::detail {
namespace {

// Clips what Base computes: the rank's own gradients, before a DistributedOptimizer averages them.
template <typename Base>
class Clipped : public Base {
 public:
  template <typename... Args>
  explicit Clipped(Clipping limits, Args&&... args) : Base(std::forward<Args>(args)...), limits_(limits) {}
  using Base::compute_gradients;
  std::vector<GradientPair> compute_gradients(Scope& s, Output loss, std::span<const Variable> variables,
                                              const ComputeGradientsOptions& options) override {
    return clipped(s, Base::compute_gradients(s, loss, variables, options), limits_);
  }
  bool is_element_wise() const override { return true; }

 private:
  Clipping limits_;
};

// A rule in plain ops: slots from 0, and numbers that all variables share.
class Rule : public RuleOptimizer {
 public:
  Rule(const char* name, std::vector<std::string> slots, RuleNumbers numbers)
      : RuleOptimizer(name), numbers_(std::move(numbers)), slot_names_(std::move(slots)) {}

 protected:
  void create_slots(const Scope& s, std::span<const Variable> variables) override {
    for (const Variable& variable : variables)
      for (const std::string& slot : slot_names_) create_slot(s, variable, slot);
    shared(s, variables.front());
  }
  /// Makes what all variables share; `s` is in no variable's place.
  virtual void shared(const Scope& /*s*/, const Variable& /*first*/) {}

  double number(const char* key) const { return numbers_.numbers.at(key); }
  Output value(const Scope& s, double number) const { return fill(s, DType::f32, {}, number); }
  Output times(const Scope& s, Output x, double by) const { return mul(s, x, value(s, by)); }
  /// old · share + now · (1 − share), which the slot keeps.
  Output averaged(const Scope& s, const Variable& slot, Output now, double share) const {
    return assign(s, slot, add(s, times(s, slot, share), times(s, now, 1 - share)));
  }
  /// The number of this update, from 1, as f32.
  Output update_number(const Scope& s) const {
    return add(s, cast(s, numbers_.iterations, DType::f32), value(s, 1));
  }
  Output power(const Scope& s, const char* base, Output exponent) const {
    return pow(s, value(s, number(base)), exponent);
  }
  Output one_minus(const Scope& s, Output x) const { return sub(s, value(s, 1), x); }
  /// v −= rate · step / (scale + epsilon).
  Operation scaled_step(const Scope& s, const Variable& v, Output rate, Output step, Output scale) const {
    const Output divisor = add(s, scale, value(s, number("epsilon")));
    return assign_sub(s, v, div(s, mul(s, rate, step), divisor));
  }

  RuleNumbers numbers_;

 private:
  std::vector<std::string> slot_names_;
};

class PlainSgd : public Rule {
 public:
  explicit PlainSgd(RuleNumbers numbers) : Rule("SGD", {}, std::move(numbers)) {}

 protected:
  Operation apply(const Scope& s, Output g, const Variable& v) override {
    return apply_update(
        s, {.rule = "GradientDescent", .variable = v, .slots = {}, .scalars = {numbers_.rate}}, g);
  }
};

// The rate is inside the momentum.
class MomentumSgd : public Rule {
 public:
  explicit MomentumSgd(RuleNumbers numbers) : Rule("SGD", {"momentum"}, std::move(numbers)) {}

 protected:
  Operation apply(const Scope& s, Output g, const Variable& v) override {
    const Variable u = find_slot(v, "momentum");
    const Output down = mul(s, numbers_.rate, g);
    const Output next = assign(s, u, sub(s, mul(s, numbers_.momentum, u), down));
    if (!numbers_.flags.at("nesterov")) return assign_add(s, v, next);
    return assign_add(s, v, sub(s, mul(s, numbers_.momentum, next), down));
  }
};

class RmsProp : public Rule {
 public:
  explicit RmsProp(RuleNumbers numbers) : Rule("RMSprop", {"accumulator"}, std::move(numbers)) {}

 protected:
  Operation apply(const Scope& s, Output g, const Variable& v) override {
    const Output a = averaged(s, find_slot(v, "accumulator"), square(s, g), number("rho"));
    return scaled_step(s, v, numbers_.rate, g, sqrt(s, a));
  }
};

class AdagradRule : public Rule {
 public:
  explicit AdagradRule(RuleNumbers numbers) : Rule("Adagrad", {"accumulator"}, std::move(numbers)) {}

 protected:
  Operation apply(const Scope& s, Output g, const Variable& v) override {
    const Output a = assign_add(s, find_slot(v, "accumulator"), square(s, g));
    return scaled_step(s, v, numbers_.rate, g, sqrt(s, a));
  }
};

// Adam with the largest v so far: Reddi, Kale, Kumar, ICLR 2018, as in Keras.
class AmsGrad : public Rule {
 public:
  explicit AmsGrad(RuleNumbers numbers) : Rule("Adam", {"m", "v", "vhat"}, std::move(numbers)) {}

 protected:
  void shared(const Scope& s, const Variable&) override {
    const Output t = update_number(s);
    const Output up = sqrt(s, one_minus(s, power(s, "beta_2", t)));
    rate_ = mul(s, numbers_.rate, div(s, up, one_minus(s, power(s, "beta_1", t))));
  }
  Operation apply(const Scope& s, Output g, const Variable& v) override {
    const Output m = averaged(s, find_slot(v, "m"), g, number("beta_1"));
    const Output w = averaged(s, find_slot(v, "v"), square(s, g), number("beta_2"));
    const Variable largest = find_slot(v, "vhat");
    return scaled_step(s, v, rate_, m, sqrt(s, assign(s, largest, maximum(s, largest, w))));
  }

 private:
  Output rate_;
};

// Adam's variant by the infinity norm: Kingma and Ba 2014, section 7.1.
class AdamaxRule : public Rule {
 public:
  explicit AdamaxRule(RuleNumbers numbers) : Rule("Adamax", {"m", "u"}, std::move(numbers)) {}

 protected:
  void shared(const Scope& s, const Variable&) override {
    rate_ = div(s, numbers_.rate, one_minus(s, power(s, "beta_1", update_number(s))));
  }
  Operation apply(const Scope& s, Output g, const Variable& v) override {
    const Output m = averaged(s, find_slot(v, "m"), g, number("beta_1"));
    const Variable u = find_slot(v, "u");
    const Output next = assign(s, u, maximum(s, times(s, u, number("beta_2")), abs(s, g)));
    return scaled_step(s, v, rate_, m, next);
  }

 private:
  Output rate_;
};

// Dozat, "Incorporating Nesterov momentum into Adam", 2016, with Keras' schedule of momenta.
class NadamRule : public Rule {
 public:
  explicit NadamRule(RuleNumbers numbers) : Rule("Nadam", {"m", "v"}, std::move(numbers)) {}

 protected:
  void shared(const Scope& s, const Variable& first) override {
    schedule_ = create_scalar(s, first, "m_schedule", 1.0);
    const Output t = update_number(s);
    momentum_ = momentum_at(s, t);
    next_momentum_ = momentum_at(s, add(s, t, value(s, 1)));
    product_ = mul(s, schedule_, momentum_);
    gradient_scale_ = one_minus(s, product_);
    mean_scale_ = one_minus(s, mul(s, product_, next_momentum_));
    square_scale_ = one_minus(s, power(s, "beta_2", t));
  }
  Operation apply(const Scope& s, Output g, const Variable& v) override {
    const Output m = averaged(s, find_slot(v, "m"), g, number("beta_1"));
    const Output w = averaged(s, find_slot(v, "v"), square(s, g), number("beta_2"));
    const Output now = mul(s, one_minus(s, momentum_), div(s, g, gradient_scale_));
    const Output ahead = mul(s, next_momentum_, div(s, m, mean_scale_));
    return scaled_step(s, v, numbers_.rate, add(s, now, ahead), sqrt(s, div(s, w, square_scale_)));
  }
  Operation finish(const Scope& s, const std::vector<Operation>& updates) override {
    const Scope after = s.control_dependencies(updates).colocate_with(schedule_.ref());
    return assign(after, schedule_, product_);
  }

 private:
  Output momentum_at(const Scope& s, Output t) const {
    const Output fallen = pow(s, value(s, 0.96), times(s, t, number("schedule_decay")));
    return times(s, one_minus(s, times(s, fallen, 0.5)), number("beta_1"));
  }
  Variable schedule_;
  Output momentum_, next_momentum_, product_, gradient_scale_, mean_scale_, square_scale_;
};

}  // namespace

std::vector<GradientPair> clipped(const Scope& s, std::vector<GradientPair> pairs, const Clipping& limits) {
  for (GradientPair& pair : pairs)
    if (pair.gradient && indexed_slices(pair.gradient)) pair.gradient = identity(s, pair.gradient);
  if (limits.global_norm > 0) return clip_by_global_norm(s, pairs, limits.global_norm);
  for (GradientPair& pair : pairs) {
    if (!pair.gradient) continue;
    if (limits.norm > 0) pair.gradient = clip_by_norm(s, pair.gradient, limits.norm);
    if (limits.value > 0) pair.gradient = clip_by_value(s, pair.gradient, -limits.value, limits.value);
  }
  return pairs;
}

std::unique_ptr<kolo::Optimizer> make_rule(const std::string& name, const RuleNumbers& numbers) {
  const Clipping& limits = numbers.clipping;
  const auto at = [&](const char* key) { return numbers.numbers.at(key); };
  if (name == "SGD" && !numbers.momentum) return std::make_unique<Clipped<PlainSgd>>(limits, numbers);
  if (name == "SGD") return std::make_unique<Clipped<MomentumSgd>>(limits, numbers);
  if (name == "RMSprop") return std::make_unique<Clipped<RmsProp>>(limits, numbers);
  if (name == "Adagrad") return std::make_unique<Clipped<AdagradRule>>(limits, numbers);
  if (name == "Adadelta")
    return std::make_unique<Clipped<AdadeltaOptimizer>>(
        limits,
        kolo::AdadeltaOptions{.learning_rate = numbers.rate, .rho = at("rho"), .epsilon = at("epsilon")});
  if (name == "Adam" && numbers.flags.at("amsgrad"))
    return std::make_unique<Clipped<AmsGrad>>(limits, numbers);
  if (name == "Adam")
    return std::make_unique<Clipped<AdamOptimizer>>(limits, kolo::AdamOptions{.learning_rate = numbers.rate,
                                                                              .beta1 = at("beta_1"),
                                                                              .beta2 = at("beta_2"),
                                                                              .epsilon = at("epsilon")});
  if (name == "Adamax") return std::make_unique<Clipped<AdamaxRule>>(limits, numbers);
  if (name == "Nadam") return std::make_unique<Clipped<NadamRule>>(limits, numbers);
  throw InternalError("there is no rule for the optimizer {}", name);
}

}  // namespace kolo::keras::detail
