#include <kolo/models/keras/metrics.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/models/keras/losses_internal.h>
#include <kolo/models/keras/names_internal.h>

namespace kolo::keras {
namespace {

constexpr std::int64_t kTop = 5;

Output as_numbers(const Scope& s, Output truth) { return cast(s, truth, DType::f32); }

Output binary_accuracy(const Scope& s, Output t, Output p) {
  return reduce_mean(s, as_numbers(s, equal(s, t, round(s, p))), {.axes = {-1}});
}
Output categorical_accuracy(const Scope& s, Output t, Output p) {
  return as_numbers(s, equal(s, argmax(s, t), argmax(s, p)));
}
// Class numbers [N,…,1] without their last axis.
Output class_numbers(const Scope& s, Output t) {
  return squeeze(s, cast(s, t, DType::i64), {t.shape().rank() - 1});
}
Output sparse_categorical_accuracy(const Scope& s, Output t, Output p) {
  return as_numbers(s, equal(s, class_numbers(s, t), argmax(s, p)));
}
Output top_k_categorical_accuracy(const Scope& s, Output t, Output p) {
  return as_numbers(s, in_top_k(s, p, argmax(s, t), kTop));
}
Output sparse_top_k_categorical_accuracy(const Scope& s, Output t, Output p) {
  return as_numbers(s, in_top_k(s, p, class_numbers(s, t), kTop));
}

using Plain = Output (*)(const Scope& s, Output t, Output p);
const std::map<std::string, Plain>& own_metrics() {
  static const std::map<std::string, Plain> known = {
      {"binary_accuracy", binary_accuracy},
      {"categorical_accuracy", categorical_accuracy},
      {"sparse_categorical_accuracy", sparse_categorical_accuracy},
      {"top_k_categorical_accuracy", top_k_categorical_accuracy},
      {"sparse_top_k_categorical_accuracy", sparse_top_k_categorical_accuracy},
      {"accuracy", nullptr},
      {"acc", nullptr},
      {"crossentropy", nullptr},
      {"ce", nullptr}};
  return known;
}

bool is_accuracy(const std::string& name) { return name == "accuracy" || name == "acc"; }
bool is_crossentropy(const std::string& name) { return name == "crossentropy" || name == "ce"; }

LossFunction chosen(const std::string& name, const Output& p, const Loss& loss) {
  const bool accuracy = is_accuracy(name);
  if (accuracy || is_crossentropy(name)) {
    const std::string kind = p.shape().dim(-1) == 1 || loss.name() == "binary_crossentropy" ? "binary"
                             : loss.is_sparse() ? "sparse_categorical"
                                                : "categorical";
    return chosen(kind + (accuracy ? "_accuracy" : "_crossentropy"), p, loss);
  }
  const auto found = own_metrics().find(name);
  return found == own_metrics().end() ? detail::known_loss(name) : LossFunction(found->second);
}

}  // namespace

Metric::Metric(const std::string& name) : name_(name) {
  if (own_metrics().count(name) == 1 || detail::known_loss(name)) return;
  std::vector<std::string> known = detail::keys_of(own_metrics());
  for (const char* loss :
       {"mean_squared_error", "mean_absolute_error", "categorical_crossentropy", "mse", "mae"})
    known.emplace_back(loss);
  throw InvalidArgumentError("{}", detail::unknown_text("metric function", name, known));
}

std::string Metric::shown_name() const {
  if (function_) return name_;
  return is_accuracy(name_) ? "acc" : is_crossentropy(name_) ? "ce" : detail::long_name(name_);
}

Output Metric::values(const Scope& s, Output t, Output p, const Loss& loss) const {
  return detail::mean_by_sample(s, (function_ ? function_ : chosen(name_, p, loss))(s, t, p));
}

}  // namespace kolo::keras
