// All callbacks of a fit, told of it in their order.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <kolo/models/keras/logger_callbacks.h>

namespace kolo::keras::detail {

/// Warns of callbacks whose median of the last ten batches is over 0.1 s and 95 % of a batch, once for each
/// of the two calls.
class SlowCallbacks {
 public:
  explicit SlowCallbacks(const char* call) : call_(call) {}
  void note(double seconds, double batch_seconds);

 private:
  const char* call_;
  std::deque<double> last_;
  bool warned_ = false;
};

/// A BaseLogger, the user's, a History, a ProgbarLogger.
class CallbackList {
 public:
  CallbackList(const std::vector<AnyCallback>& users, bool counts_steps);

  void attach(const Model& model, const CallbackParams& params);
  void on_train_begin();
  void on_train_end();
  void on_epoch_begin(std::int64_t epoch);
  void on_epoch_end(std::int64_t epoch, Logs& logs);
  void on_batch_begin(std::int64_t batch, Logs& logs);
  void on_batch_end(std::int64_t batch, Logs& logs);

  /// Those that keep sums of the epoch so far, the same ones.
  std::vector<std::shared_ptr<BaseLogger>> loggers() const { return {means_, progress_}; }
  History& history() const { return *history_; }

 private:
  using Clock = std::chrono::steady_clock;

  std::shared_ptr<BaseLogger> means_ = std::make_shared<BaseLogger>();
  std::shared_ptr<History> history_ = std::make_shared<History>();
  std::shared_ptr<ProgbarLogger> progress_;
  std::vector<AnyCallback> all_;
  Clock::time_point batch_begun_ = {};
  double begin_seconds_ = 0;  // of the callbacks of the batch
  SlowCallbacks slow_begin_{"on_batch_begin"}, slow_end_{"on_batch_end"};
};

}  // namespace kolo::keras::detail
