#include <kolo/optimizer/metric_average_hook.h>

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/runtime/group.h>

namespace kolo {
namespace {

struct Report {
  std::optional<double> samples;
  Metrics metrics;
  std::string names;  // for messages: "accuracy", "loss"
};

// A line for the samples, a line for each metric: the value's bits, then the name.
std::string write_report(const Metrics& metrics, const std::optional<double>& samples) {
  std::string text = samples ? fmt::format("{:a}\n", *samples) : "-\n";
  for (const auto& [name, value] : metrics) text += fmt::format("{:a} {}\n", value, name);
  return text;
}

Report read_report(const std::string& text) {
  Report report;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  if (line != "-") report.samples = std::strtod(line.c_str(), nullptr);
  while (std::getline(lines, line)) {
    const auto space = line.find(' ');
    const std::string name = line.substr(space + 1);
    report.metrics[name] = std::strtod(line.c_str(), nullptr);
    report.names += fmt::format("{}\"{}\"", report.names.empty() ? "" : ", ", name);
  }
  return report;
}

// Every rank sees the same reports and so throws the same error.
void check_alike(const std::vector<Report>& reports) {
  for (std::size_t rank = 1; rank < reports.size(); ++rank) {
    if (reports[rank].names != reports[0].names)
      throw InvalidArgumentError(
          "Ranks disagree on the metrics to average: rank 0 has [{}], rank {} has [{}]", reports[0].names,
          rank, reports[rank].names);
    if (reports[rank].samples.has_value() != reports[0].samples.has_value())
      throw InvalidArgumentError(
          "Ranks disagree on the metrics to average: rank {} gives its samples, rank {} does not",
          reports[0].samples ? 0 : rank, reports[0].samples ? rank : 0);
  }
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
  std::vector<Report> reports;
  for (const std::string& text : world_group().allgather(write_report(metrics, samples)))
    reports.push_back(read_report(text));
  check_alike(reports);
  Metrics averages;
  for (const auto& [name, value] : metrics) {
    double sum = 0, weights = 0;
    for (const Report& report : reports) {
      const double weight = report.samples.value_or(1);
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
