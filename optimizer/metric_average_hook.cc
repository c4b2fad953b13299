#include <kolo/optimizer/hooks.h>

#include <fmt/format.h>

#include <cstddef>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/runtime/compare_ranks.h>
#include <kolo/core/runtime/exchange_numbers.h>
#include <kolo/core/runtime/group.h>

namespace kolo {
namespace {

struct MetricReport {
  double samples = 1;  // its weight
  Metrics metrics;
};

// Of all ranks, by rank. The samples go first, under no name.
std::vector<MetricReport> exchange_reports(Group& group, const Metrics& metrics, double samples) {
  detail::NamedNumbers own = {{"", {samples}}};
  for (const auto& [name, value] : metrics) own.push_back({name, {value}});
  std::vector<MetricReport> reports;
  for (const detail::NamedNumbers& theirs : detail::allgather_named(group, own)) {
    MetricReport& report = reports.emplace_back();
    report.samples = theirs.at(0).second.at(0);
    for (std::size_t i = 1; i < theirs.size(); ++i) report.metrics[theirs[i].first] = theirs[i].second.at(0);
  }
  return reports;
}

constexpr char kNames[] = "names", kSamples[] = "samples";

// Throws the same error on every rank.
void check_alike(Group& group, const Metrics& metrics, bool has_samples) {
  std::string names;
  for (const auto& [name, value] : metrics) names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name);
  const auto difference =
      detail::compare_ranks(group, {{kNames, names}, {kSamples, has_samples ? "given" : "none"}});
  if (!difference) return;
  const std::string &first = *difference->texts[0],
                    &other = *difference->texts[static_cast<std::size_t>(difference->other)];
  if (difference->name == kNames)
    throw InvalidArgumentError("Ranks disagree on the metrics to average: rank 0 has [{}], rank {} has [{}]",
                               first, difference->other, other);
  throw InvalidArgumentError(
      "Ranks disagree on the metrics to average: rank {} gives its samples, rank {} does not",
      first == "given" ? 0 : difference->other, first == "given" ? difference->other : 0);
}

double number(const Tensor& scalar) {
  switch (scalar.dtype()) {
    case DType::f32: return scalar.value<float>();
    case DType::f64: return scalar.value<double>();
    case DType::i32: return scalar.value<std::int32_t>();
    case DType::i64: return static_cast<double>(scalar.value<std::int64_t>());
    default:
      throw InvalidArgumentError("a metric is {}; metrics are f32 or f64, samples i32 or i64 too",
                                 scalar.dtype());
  }
}

}  // namespace

Metrics average_metrics(const Metrics& metrics, std::optional<double> samples) {
  Group& group = world_group();
  check_alike(group, metrics, samples.has_value());
  const std::vector<MetricReport> reports = exchange_reports(group, metrics, samples.value_or(1));
  Metrics averages;
  for (const auto& [name, value] : metrics) {
    double sum = 0, weights = 0;
    for (const MetricReport& report : reports) {
      const double weight = report.samples;
      // A rank without samples has no value either: often NaN.
      if (weight != 0) sum += weight * report.metrics.at(name);
      weights += weight;
    }
    averages[name] = sum / weights;
  }
  return averages;
}

MetricAverageHook::MetricAverageHook(MetricAverageOptions options) : options_(std::move(options)) {
  if (options_.metrics.empty())
    throw InvalidArgumentError("MetricAverageHook: there are no metrics to average");
  if (options_.steps_per_epoch < 1)
    throw InvalidArgumentError("MetricAverageHook: steps_per_epoch is {}; it must be positive",
                               options_.steps_per_epoch);
}

SessionRunArgs MetricAverageHook::before_run(RunContext&) {
  SessionRunArgs args;
  for (const auto& [name, metric] : options_.metrics) args.fetches.emplace_back(metric);
  if (options_.samples) args.fetches.emplace_back(options_.samples);
  return args;
}

void MetricAverageHook::after_run(RunContext&, const RunValues& values) {
  const double samples = options_.samples ? number(values.results.back()) : 1;
  std::size_t next = 0;
  for (const auto& [name, metric] : options_.metrics) {
    const double value = number(values.results[next++]);
    if (samples != 0) sums_[name] += samples * value;
  }
  samples_ += samples;
  if (++runs_ == options_.steps_per_epoch) finish_epoch();
}

void MetricAverageHook::end(Session&) {
  if (runs_ > 0) finish_epoch();
}

void MetricAverageHook::finish_epoch() {
  Metrics own;
  for (const auto& [name, metric] : options_.metrics) own[name] = sums_[name] / samples_;
  const Metrics averages = average_metrics(own, options_.samples ? std::optional(samples_) : std::nullopt);
  sums_.clear();
  samples_ = 0;
  runs_ = 0;
  ++epoch_;
  if (options_.on_epoch) return options_.on_epoch(epoch_, averages);
  if (world_group().rank() != 0) return;
  std::string text;
  for (const auto& [name, value] : averages) text += fmt::format(" {} {:.6g}", name, value);
  log_info("epoch {}:{}", epoch_, text);
}

}  // namespace kolo
