#include <kolo/models/programs/best_value.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/text.h>
#include <kolo/models/programs/losses.h>

namespace kolo::models {
namespace {

struct Metric {
  std::string_view name;
  bool larger_is_better;
  std::optional<LabelKind> kind;  // that it is of; none: all
  std::optional<double> (*of)(const Evaluation&);
};

constexpr std::array kMetrics = {
    Metric{"test_loss", false, {}, [](const Evaluation& e) -> std::optional<double> { return e.loss(); }},
    Metric{"test_accuracy", true, LabelKind::one_class,
           [](const Evaluation& e) -> std::optional<double> { return e.accuracy(); }},
    Metric{"test_exact_match", true, LabelKind::several,
           [](const Evaluation& e) -> std::optional<double> { return e.accuracy(); }},
    Metric{"test_mae", false, LabelKind::numbers,
           [](const Evaluation& e) { return e.errors ? std::optional(e.errors->mae) : std::nullopt; }},
    Metric{"test_rmse", false, LabelKind::numbers,
           [](const Evaluation& e) { return e.errors ? std::optional(e.errors->rmse) : std::nullopt; }},
    Metric{"test_r2", true, LabelKind::numbers,
           [](const Evaluation& e) { return e.errors ? e.errors->r2 : std::nullopt; }},
};

const Metric* find_metric(const std::string& name) {
  const auto* const found = std::find_if(kMetrics.begin(), kMetrics.end(),
                                         [&](const Metric& metric) { return metric.name == name; });
  return found == kMetrics.end() ? nullptr : found;
}

// All its bits.
std::string exact(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

}  // namespace

std::string evaluation_metrics() {
  std::string names;
  for (const Metric& metric : kMetrics) {
    if (!names.empty()) names += '|';
    names += metric.name;
  }
  return names;
}

bool is_evaluation_metric(const std::string& name) { return find_metric(name) != nullptr; }

void BestValue::check(LabelKind kind) const {
  if (find_metric(metric_)->kind.value_or(kind) == kind) return;
  std::vector<std::string_view> there;
  for (const Metric& metric : kMetrics)
    if (metric.kind.value_or(kind) == kind) there.push_back(metric.name);
  const std::string_view last = there.back();
  there.pop_back();
  throw InvalidArgumentError("there is no {} of this model's test samples; {} have {} and {}", metric_,
                             plural_of(kind), fmt::join(there, ", "), last);
}

bool BestValue::note(std::int64_t step, const Evaluation& evaluation) {
  const Metric& metric = *find_metric(metric_);
  const double value = metric.of(evaluation).value_or(std::nan(""));
  noted_ = step;
  const bool is_better =
      best_ ? (metric.larger_is_better ? value > *best_ : value < *best_) : !std::isnan(value);
  if (!is_better) return ++waited_, false;
  best_ = value;
  step_ = step;
  waited_ = 0;
  return true;
}

std::string BestValue::text() const {
  return best_ ? fmt::format("{} {:.6g} at step {}", metric_, *best_, step_)
               : metric_ + " was never a number";
}

std::string BestValue::state() const {
  return json_text(nlohmann::json{{"metric", metric_},
                                  {"best", best_ ? exact(*best_) : ""},
                                  {"step", step_},
                                  {"noted", noted_},
                                  {"waited", waited_}});
}

void BestValue::restore(const std::string& state) {
  const auto kept = nlohmann::json::parse(state);
  if (kept.at("metric") != metric_) return;
  best_ = parse_double(kept.at("best").get<std::string>());
  step_ = kept.at("step");
  noted_ = kept.at("noted");
  waited_ = kept.at("waited");
}

}  // namespace kolo::models
