#include <kolo/models/keras/losses.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/models/keras/losses_internal.h>
#include <kolo/models/keras/names_internal.h>

namespace kolo::keras {
namespace losses {
namespace {

constexpr double kEpsilon = 1e-7;

Output number(const Scope& s, const Output& like, double value) { return fill(s, like.dtype(), {}, value); }
Output last_mean(const Scope& s, Output x) { return reduce_mean(s, x, {.axes = {-1}}); }
Output last_sum(const Scope& s, Output x) { return reduce_sum(s, x, {.axes = {-1}}); }
Output plus(const Scope& s, Output x, double value) { return add(s, x, number(s, x, value)); }
Output one_minus(const Scope& s, Output x) { return sub(s, number(s, x, 1), x); }
Output at_least(const Scope& s, Output x, double value) { return maximum(s, x, number(s, x, value)); }

Output log_plus_one(const Scope& s, Output x) { return log(s, plus(s, at_least(s, x, kEpsilon), 1)); }
Output margin(const Scope& s, Output t, Output p) { return relu(s, one_minus(s, mul(s, t, p))); }

Output unit_length(const Scope& s, Output x) {
  const Output squares = reduce_sum(s, square(s, x), {.axes = {-1}, .keep_dims = true});
  return mul(s, x, rsqrt(s, at_least(s, squares, 1e-12)));
}

// Σ along the classes of −t · log p.
Output surprise(const Scope& s, Output t, Output log_p) { return neg(s, last_sum(s, mul(s, t, log_p))); }

// t [N,…,1] and logits [N,…,classes] → [N,…].
Output sparse_from_logits(const Scope& s, Output t, Output logits) {
  const Output flat = reshape(s, logits, {-1, logits.shape().dim(-1)});
  const Output values = sparse_softmax_cross_entropy_with_logits(s, flat, reshape(s, t, {-1}));
  if (logits.shape().rank() == 2) return values;
  std::vector<std::int64_t> dims = logits.shape().dims();
  dims.pop_back();
  return reshape(s, values, Shape(dims).with_dim(0, -1));
}

Output binary_from_logits(const Scope& s, Output t, Output p) {
  return last_mean(s, sigmoid_cross_entropy_with_logits(s, p, t));
}
Output categorical_from_logits(const Scope& s, Output t, Output p) {
  return surprise(s, t, log_softmax(s, p));
}

}  // namespace

Output mean_squared_error(const Scope& s, Output t, Output p) {
  return last_mean(s, square(s, sub(s, p, t)));
}
Output mean_absolute_error(const Scope& s, Output t, Output p) { return last_mean(s, abs(s, sub(s, p, t))); }
Output mean_absolute_percentage_error(const Scope& s, Output t, Output p) {
  const Output shares = div(s, abs(s, sub(s, t, p)), at_least(s, abs(s, t), kEpsilon));
  return mul(s, last_mean(s, shares), number(s, p, 100));
}
Output mean_squared_logarithmic_error(const Scope& s, Output t, Output p) {
  return last_mean(s, square(s, sub(s, log_plus_one(s, p), log_plus_one(s, t))));
}
Output hinge(const Scope& s, Output t, Output p) { return last_mean(s, margin(s, t, p)); }
Output squared_hinge(const Scope& s, Output t, Output p) { return last_mean(s, square(s, margin(s, t, p))); }
Output categorical_hinge(const Scope& s, Output t, Output p) {
  const Output right = last_sum(s, mul(s, t, p));
  const Output wrong = reduce_max(s, mul(s, one_minus(s, t), p), {.axes = {-1}});
  return relu(s, plus(s, sub(s, wrong, right), 1));
}
Output logcosh(const Scope& s, Output t, Output p) {
  const Output x = sub(s, p, t);  // log(cosh(x)) = x + log(1 + e^(−2x)) − log 2, without overflow
  return last_mean(s, plus(s, add(s, x, softplus(s, mul(s, x, number(s, x, -2)))), -std::log(2.0)));
}
Output poisson(const Scope& s, Output t, Output p) {
  return last_mean(s, sub(s, p, mul(s, t, log(s, plus(s, p, kEpsilon)))));
}
Output kullback_leibler_divergence(const Scope& s, Output t, Output p) {
  const Output a = clip_by_value(s, t, kEpsilon, 1), b = clip_by_value(s, p, kEpsilon, 1);
  return last_sum(s, mul(s, a, log(s, div(s, a, b))));
}
Output cosine_proximity(const Scope& s, Output t, Output p) {
  return neg(s, last_sum(s, mul(s, unit_length(s, t), unit_length(s, p))));
}
Output binary_crossentropy(const Scope& s, Output t, Output p) {
  const Output q = clip_by_value(s, p, kEpsilon, 1 - kEpsilon);
  const Output yes = mul(s, t, log(s, q)), no = mul(s, one_minus(s, t), log(s, one_minus(s, q)));
  return neg(s, last_mean(s, add(s, yes, no)));
}
Output categorical_crossentropy(const Scope& s, Output t, Output p) {
  const Output shares = div(s, p, reduce_sum(s, p, {.axes = {-1}, .keep_dims = true}));
  return surprise(s, t, log(s, clip_by_value(s, shares, kEpsilon, 1 - kEpsilon)));
}
Output sparse_categorical_crossentropy(const Scope& s, Output t, Output p) {
  return sparse_from_logits(s, t, log(s, clip_by_value(s, p, kEpsilon, 1 - kEpsilon)));
}

namespace {

using Plain = Output (*)(const Scope& s, Output t, Output p);

const std::map<std::string, Plain>& known_losses() {
  static const std::map<std::string, Plain> known = {
      {"mean_squared_error", mean_squared_error},
      {"mean_absolute_error", mean_absolute_error},
      {"mean_absolute_percentage_error", mean_absolute_percentage_error},
      {"mean_squared_logarithmic_error", mean_squared_logarithmic_error},
      {"hinge", hinge},
      {"squared_hinge", squared_hinge},
      {"categorical_hinge", categorical_hinge},
      {"logcosh", logcosh},
      {"poisson", poisson},
      {"kullback_leibler_divergence", kullback_leibler_divergence},
      {"cosine_proximity", cosine_proximity},
      {"binary_crossentropy", binary_crossentropy},
      {"categorical_crossentropy", categorical_crossentropy},
      {"sparse_categorical_crossentropy", sparse_categorical_crossentropy}};
  return known;
}

const std::map<std::string, Plain>& losses_of_logits() {
  static const std::map<std::string, Plain> known = {{"binary_crossentropy", binary_from_logits},
                                                     {"categorical_crossentropy", categorical_from_logits},
                                                     {"sparse_categorical_crossentropy", sparse_from_logits}};
  return known;
}

}  // namespace
}  // namespace losses

namespace detail {

std::string long_name(const std::string& name) {
  static const std::map<std::string, std::string> longer = {{"mse", "mean_squared_error"},
                                                            {"mae", "mean_absolute_error"},
                                                            {"mape", "mean_absolute_percentage_error"},
                                                            {"msle", "mean_squared_logarithmic_error"},
                                                            {"kld", "kullback_leibler_divergence"},
                                                            {"cosine", "cosine_proximity"}};
  const auto found = longer.find(lower_case(name));
  return found == longer.end() ? name : found->second;
}

Output mean_by_sample(const Scope& s, Output values) {
  std::vector<std::int64_t> axes;
  for (int axis = 1; axis < values.shape().rank(); ++axis) axes.push_back(axis);
  return axes.empty() ? values : reduce_mean(s, values, {.axes = axes});
}

LossFunction known_loss(const std::string& name) {
  const auto found = losses::known_losses().find(long_name(name));
  return found == losses::known_losses().end() ? LossFunction() : LossFunction(found->second);
}

}  // namespace detail

Loss::Loss(const std::string& name, LossOptions options)
    : name_(detail::long_name(name)), from_logits_(options.from_logits) {
  const auto& known = losses::known_losses();
  const auto found = known.find(name_);
  if (found == known.end())
    throw InvalidArgumentError("{}", detail::unknown_text("loss function", name, detail::keys_of(known)));
  function_ = found->second;
  if (!from_logits_) return;
  const auto of_logits = losses::losses_of_logits().find(name_);
  if (of_logits == losses::losses_of_logits().end())
    throw InvalidArgumentError("from_logits: {} takes no logits; the three crossentropies do", name_);
  function_ = of_logits->second;
}

Output Loss::values(const Scope& s, Output t, Output p) const {
  return detail::mean_by_sample(s, function_(s, t, p));
}

}  // namespace kolo::keras
