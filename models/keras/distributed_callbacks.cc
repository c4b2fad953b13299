#include <kolo/models/keras/distributed_callbacks.h>

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/exchange_numbers.h>
#include <kolo/core/runtime/group.h>
#include <kolo/models/keras/trainer_internal.h>
#include <kolo/optimizer/hooks.h>

namespace kolo::keras {

void BroadcastGlobalVariablesCallback::on_train_begin(Logs&) {
  detail::ModelImpl& impl = model().model();
  std::vector<Variable> variables;
  for (const detail::Weight* weight : impl.weights()) variables.push_back(weight->variable);
  for (const detail::OptimizerState& state : impl.trainer().optimizer_state())
    variables.push_back(state.variable);
  impl.workspace().initialize_variables();
  broadcast_variables(impl.workspace().session(), variables, root_);
}

void MetricAverageCallback::on_epoch_end(std::int64_t, Logs& logs) {
  if (world_group().size() == 1) return;
  std::map<std::string, double> sorted(logs.entries().begin(), logs.entries().end());
  std::map<std::string, std::pair<double, double>> sums;  // weighted values, and weights
  kolo::detail::NamedNumbers own;
  for (const auto& [name, value] : sorted) {
    const bool of_validation = name.rfind("val_", 0) == 0;
    const std::int64_t samples = of_validation ? params().validation_samples : params().samples;
    const bool weighs = weighted_ || params().unequal_ranks;
    own.push_back({name, {value, weighs ? static_cast<double>(samples) : 1}});
  }
  for (const kolo::detail::NamedNumbers& theirs : kolo::detail::allgather_named(world_group(), own)) {
    for (const auto& [name, numbers] : theirs) {
      sums[name].first += numbers.at(1) * numbers.at(0);
      sums[name].second += numbers.at(1);
    }
  }
  for (const auto& [name, sum] : sums)
    if (logs.find(name) && sum.second > 0) logs.set(name, sum.first / sum.second);
}

LearningRateScheduleCallback::LearningRateScheduleCallback(LearningRateScheduleOptions options)
    : options_(std::move(options)) {
  if (!options_.initial_lr) throw InvalidArgumentError("Parameter `initial_lr` is required");
}

void LearningRateScheduleCallback::on_epoch_begin(std::int64_t epoch, Logs&) { epoch_ = epoch; }

void LearningRateScheduleCallback::on_batch_begin(std::int64_t batch, Logs&) {
  if (epoch_ < options_.start_epoch || (options_.end_epoch && epoch_ >= *options_.end_epoch)) return;
  if (options_.staircase && batch > 0) return;
  if (!options_.staircase && steps() < 1)
    throw InvalidArgumentError(
        "Could not autodetect the number of steps per epoch. Please specify the steps_per_epoch parameter");
  const double fraction = options_.staircase ? 0 : static_cast<double>(batch) / static_cast<double>(steps());
  const double epoch = static_cast<double>(epoch_) + fraction;
  const Multiplier& m = options_.multiplier;
  const double factor =
      m.base ? std::pow(*m.base, epoch - static_cast<double>(options_.start_epoch)) : m.function(epoch);
  const Optimizer& optimizer = model().optimizer();
  const double before = optimizer.lr().get(), now = *options_.initial_lr * factor;
  optimizer.lr().set(now);
  if (!options_.momentum_correction || !optimizer.has("momentum") || before == 0) return;
  momentum_ = optimizer.momentum().get();
  optimizer.momentum().set(*momentum_ * now / before);
}

void LearningRateScheduleCallback::on_batch_end(std::int64_t, Logs&) {
  if (momentum_) model().optimizer().momentum().set(*momentum_);
  momentum_.reset();
}

void LearningRateScheduleCallback::on_epoch_end(std::int64_t, Logs& logs) {
  logs.set("lr", model().optimizer().lr().get());
}

double LearningRateWarmupCallback::multiplier(double epoch, std::int64_t steps, int ranks,
                                              std::int64_t warmup_epochs) {
  const double done = epoch + 1 / static_cast<double>(steps);
  return (1 + done * (ranks - 1) / static_cast<double>(warmup_epochs)) / ranks;
}

LearningRateWarmupCallback::LearningRateWarmupCallback(const LearningRateWarmupOptions& options)
    : LearningRateWarmupCallback(options, std::make_shared<std::int64_t>(0)) {}

LearningRateWarmupCallback::LearningRateWarmupCallback(const LearningRateWarmupOptions& options,
                                                       std::shared_ptr<std::int64_t> steps)
    : LearningRateScheduleCallback({.initial_lr = options.initial_lr,
                                    .multiplier =
                                        [steps, epochs = options.warmup_epochs](double epoch) {
                                          return multiplier(epoch, *steps, world_group().size(), epochs);
                                        },
                                    .start_epoch = 0,
                                    .end_epoch = options.warmup_epochs,
                                    .staircase = false,
                                    .momentum_correction = options.momentum_correction,
                                    .steps_per_epoch = options.steps_per_epoch}),
      options_(options),
      steps_(std::move(steps)) {}

void LearningRateWarmupCallback::on_epoch_begin(std::int64_t epoch, Logs& logs) {
  *steps_ = this->steps();
  LearningRateScheduleCallback::on_epoch_begin(epoch, logs);
}

void LearningRateWarmupCallback::on_epoch_end(std::int64_t epoch, Logs& logs) {
  LearningRateScheduleCallback::on_epoch_end(epoch, logs);
  if (epoch + 1 != options_.warmup_epochs || options_.verbose == 0 || world_group().rank() != 0) return;
  fmt::print("\nEpoch {}: finished gradual learning rate warmup to {:g}.\n", epoch + 1,
             model().optimizer().lr().get());
}

}  // namespace kolo::keras
