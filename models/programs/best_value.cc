#include <kolo/models/programs/best_value.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/text.h>

namespace kolo::models {
namespace {

struct Metric {
  std::string_view name;
  bool larger_is_better;
  std::optional<double> (*of)(const Evaluation&);
};

constexpr std::array kMetrics = {
    Metric{"test_loss", false, [](const Evaluation& e) -> std::optional<double> { return e.loss(); }},
    Metric{"test_accuracy", true,
           [](const Evaluation& e) -> std::optional<double> {
             return e.errors ? std::nullopt : std::optional(e.accuracy());
           }},
    Metric{"test_mae", false,
           [](const Evaluation& e) { return e.errors ? std::optional(e.errors->mae) : std::nullopt; }},
    Metric{"test_rmse", false,
           [](const Evaluation& e) { return e.errors ? std::optional(e.errors->rmse) : std::nullopt; }},
    Metric{"test_r2", true, [](const Evaluation& e) { return e.errors ? e.errors->r2 : std::nullopt; }},
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

void BestValue::check(bool of_numbers) const {
  const bool is_of_both = metric_ == "test_loss";
  if (is_of_both || (metric_ != "test_accuracy") == of_numbers) return;
  throw InvalidArgumentError(
      "there is no {} of this model's test samples; {} have {}", metric_, of_numbers ? "numbers" : "classes",
      of_numbers ? "test_loss, test_mae, test_rmse and test_r2" : "test_loss and test_accuracy");
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
