#include <kolo/models/keras/logger_callbacks.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/text.h>
#include <kolo/core/runtime/group.h>
#include <kolo/models/keras/progress_internal.h>

namespace kolo::keras {
namespace {

// Those of the logs that are losses and metrics: callbacks may have added others.
Logs metrics_of(const Logs& logs, const CallbackParams& params) {
  Logs metrics;
  for (const std::string& name : params.metrics)
    if (const auto value = logs.find(name)) metrics.set(name, *value);
  return metrics;
}

}  // namespace

void BaseLogger::on_train_begin(Logs&) { forget(); }

void BaseLogger::forget() {
  sums_ = {};
  samples_ = 0;
}

void BaseLogger::on_batch_end(std::int64_t, Logs& logs) {
  const auto size = static_cast<std::int64_t>(logs.find("size").value_or(0));
  const Logs metrics = metrics_of(logs, params());
  for (const auto& [name, value] : metrics.entries())
    sums_.set(name, sums_.find(name).value_or(0) + value * static_cast<double>(size));
  samples_ += size;
}

Logs BaseLogger::means() const {
  Logs means;
  for (const auto& [name, sum] : sums_.entries())
    means.set(name, sum / static_cast<double>(std::max<std::int64_t>(samples_, 1)));
  return means;
}

void BaseLogger::on_epoch_end(std::int64_t, Logs& logs) {
  Logs all = means();
  for (const auto& [name, value] : logs.entries()) all.set(name, value);
  logs = std::move(all);
  forget();
}

// Numbers as texts that keep all bits, what is no number too.
std::string BaseLogger::state() const {
  nlohmann::ordered_json sums = nlohmann::ordered_json::object();
  for (const auto& [name, sum] : sums_.entries()) sums[name] = exact_text({sum});
  return json_text(nlohmann::ordered_json{{"samples", samples_}, {"sums", sums}});
}

void BaseLogger::set_state(const std::string& state) {
  const auto json = nlohmann::ordered_json::parse(state);
  Logs sums;
  for (const auto& [name, sum] : json.at("sums").items()) {
    if (std::find(params().metrics.begin(), params().metrics.end(), name) == params().metrics.end())
      throw InvalidArgumentError("the checkpoint is of a training with \"{}\"; this one has {}", name,
                                 fmt::join(params().metrics, ", "));
    sums.set(name, parse_exact(sum.get<std::string>()).at(0));
  }
  sums_ = std::move(sums);
  samples_ = json.at("samples");
}

ProgbarLogger::ProgbarLogger(const std::string& count_mode) : by_steps_(count_mode == "steps") {
  if (!by_steps_ && count_mode != "samples")
    throw InvalidArgumentError("Unknown `count_mode`: {}; it is \"samples\" or \"steps\"", count_mode);
}

void ProgbarLogger::on_epoch_begin(std::int64_t epoch, Logs&) {
  const int verbose = world_group().rank() == 0 ? params().verbose : 0;
  if (verbose > 0) fmt::print("Epoch {}/{}\n", epoch + 1, params().epochs);
  line_ = std::make_shared<detail::ProgressLine>(by_steps_ ? params().steps : params().samples, verbose,
                                                 by_steps_ ? "step" : "sample");
  steps_ = 0;
}

void ProgbarLogger::on_batch_end(std::int64_t batch, Logs& logs) {
  BaseLogger::on_batch_end(batch, logs);
  steps_ = batch + 1;
  if (line_) line_->update(by_steps_ ? steps_ : samples(), means());
}

void ProgbarLogger::on_epoch_end(std::int64_t, Logs& logs) {
  if (line_) line_->finish(by_steps_ ? steps_ : samples(), metrics_of(logs, params()));
  line_.reset();
  forget();
}

}  // namespace kolo::keras
