// The callbacks that fit adds by itself: one in front of the user's, one behind them all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <kolo/models/keras/fit.h>

namespace kolo::keras {

namespace detail {
class ProgressLine;
}

/// Keeps the means of loss and metrics over an epoch, weighted by the batches' sizes, and puts them in front
/// of the epoch's logs. fit calls one before all other callbacks, on its thread.
class BaseLogger : public Callback {
 public:
  void on_train_begin(Logs& logs) override;
  void on_batch_end(std::int64_t batch, Logs& logs) override;
  void on_epoch_end(std::int64_t epoch, Logs& logs) override;
  /// Of the epoch so far.
  Logs means() const;
  std::int64_t samples() const { return samples_; }
  /// The sums, as JSON. Throws InvalidArgumentError for those of other metrics.
  std::string state() const override;
  void set_state(const std::string& state) override;
  /// The epoch begins anew.
  void forget();

 private:
  Logs sums_;
  std::int64_t samples_ = 0;
};

/// `Epoch 1/3` and the progress line of each epoch, on rank 0, as FitOptions::verbose asks. fit calls one
/// behind all other callbacks.
class ProgbarLogger : public BaseLogger {
 public:
  /// "samples" or "steps": what is counted. Throws InvalidArgumentError `Unknown `count_mode`: <m>`.
  explicit ProgbarLogger(const std::string& count_mode = "samples");
  void on_epoch_begin(std::int64_t epoch, Logs& logs) override;
  void on_batch_end(std::int64_t batch, Logs& logs) override;
  void on_epoch_end(std::int64_t epoch, Logs& logs) override;

 private:
  bool by_steps_;
  std::int64_t steps_ = 0;
  std::shared_ptr<detail::ProgressLine> line_;
};

}  // namespace kolo::keras
