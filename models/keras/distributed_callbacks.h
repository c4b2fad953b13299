// Callbacks of a training on several ranks, as Horovod has them. All ranks give fit the same ones.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include <kolo/models/keras/fit.h>

namespace kolo::keras {

/// At the start weights, optimizer state, iterations and lr are root's on all ranks. Collective.
class BroadcastGlobalVariablesCallback : public Callback {
 public:
  explicit BroadcastGlobalVariablesCallback(int root) : root_(root) {}
  void on_train_begin(Logs& logs) override;

 private:
  int root_;
};

/// At an epoch's end all numbers of the logs become their means over the ranks; weighted, and always where
/// the ranks' batches differ in size: by the samples that a rank has seen, those of val_ by its validation
/// samples. Callbacks behind it see the means. Collective.
class MetricAverageCallback : public Callback {
 public:
  explicit MetricAverageCallback(bool weighted = false) : weighted_(weighted) {}
  void on_epoch_end(std::int64_t epoch, Logs& logs) override;

 private:
  bool weighted_;
};

/// m(epoch), the epoch with its fraction where not staircase; a number c is c^(epoch − start_epoch).
struct Multiplier {
  Multiplier(double c) : base(c) {}
  Multiplier(std::function<double(double epoch)> f) : function(std::move(f)) {}
  template <typename F>
  requires(std::is_invocable_r_v<double, F, double> && !std::is_arithmetic_v<F>) Multiplier(F f)
      : function(std::move(f)) {}
  std::optional<double> base = {};
  std::function<double(double epoch)> function = {};
};

/// As Horovod's LearningRateScheduleCallback takes them. Epochs count from 0.
struct LearningRateScheduleOptions {
  std::optional<double> initial_lr = {};  // must be given
  Multiplier multiplier = 1.0;
  std::int64_t start_epoch = 0;
  std::optional<std::int64_t> end_epoch = {};  // none: to the end
  bool staircase = true;                       // set at an epoch's first batch alone
  bool momentum_correction =
      true;  // the momentum of the batch of a change is multiplied by new rate ÷ old rate
  std::optional<std::int64_t> steps_per_epoch = {};  // none: fit's
};
/// For start_epoch ≤ epoch < end_epoch the rate is initial_lr · m(epoch). Adds lr to the logs.
class LearningRateScheduleCallback : public Callback {
 public:
  /// Throws InvalidArgumentError `Parameter `initial_lr` is required`.
  explicit LearningRateScheduleCallback(LearningRateScheduleOptions options);
  void on_epoch_begin(std::int64_t epoch, Logs& logs) override;
  void on_batch_begin(std::int64_t batch, Logs& logs) override;
  void on_batch_end(std::int64_t batch, Logs& logs) override;
  void on_epoch_end(std::int64_t epoch, Logs& logs) override;

 protected:
  std::int64_t steps() const { return options_.steps_per_epoch.value_or(params().steps); }

 private:
  LearningRateScheduleOptions options_;
  std::int64_t epoch_ = 0;
  std::optional<double> momentum_;  // to be restored
};

/// As Horovod's LearningRateWarmupCallback takes them.
struct LearningRateWarmupOptions {
  std::optional<double> initial_lr = {};  // that is reached, scaled by the ranks already
  std::int64_t warmup_epochs = 5;
  bool momentum_correction = true;
  std::optional<std::int64_t> steps_per_epoch = {};
  int verbose = 0;
};
/// From about initial_lr ÷ ranks to exactly initial_lr in warmup_epochs, batch by batch.
class LearningRateWarmupCallback : public LearningRateScheduleCallback {
 public:
  explicit LearningRateWarmupCallback(const LearningRateWarmupOptions& options);
  void on_epoch_begin(std::int64_t epoch, Logs& logs) override;
  void on_epoch_end(std::int64_t epoch, Logs& logs) override;
  /// Of the batch that begins at `epoch`: (1 + (epoch + 1/steps)(ranks − 1)/warmup_epochs) / ranks.
  static double multiplier(double epoch, std::int64_t steps, int ranks, std::int64_t warmup_epochs);

 private:
  explicit LearningRateWarmupCallback(const LearningRateWarmupOptions& options,
                                      std::shared_ptr<std::int64_t> steps);
  LearningRateWarmupOptions options_;
  std::shared_ptr<std::int64_t> steps_;  // shared with the schedule's function
};

}  // namespace kolo::keras
