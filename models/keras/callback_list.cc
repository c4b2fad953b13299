#include <kolo/core/base/log.h>
#include <kolo/core/base/median.h>
#include <kolo/models/keras/callback_list_internal.h>
#include <kolo/models/keras/model.h>

namespace kolo::keras {

void Callback::attach(const Model& model, const CallbackParams& params) {
  model_ = std::make_shared<Model>(model);
  params_ = params;
}

namespace detail {
namespace {

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

void SlowCallbacks::note(double seconds, double batch_seconds) {
  constexpr std::size_t kCalls = 10;
  constexpr double kShare = 0.95, kSlow = 0.1;
  last_.push_back(seconds);
  if (last_.size() > kCalls) last_.pop_front();
  if (warned_ || last_.size() < kCalls) return;
  const double usual = median({last_.begin(), last_.end()});
  if (usual <= kSlow || usual <= kShare * batch_seconds) return;
  warned_ = true;
  log_warning("Method {}() is slow compared to the batch update ({:.6f}). Check your callbacks.", call_,
              usual);
}

CallbackList::CallbackList(const std::vector<AnyCallback>& users, bool counts_steps)
    : progress_(std::make_shared<ProgbarLogger>(counts_steps ? "steps" : "samples")), all_{means_} {
  all_.insert(all_.end(), users.begin(), users.end());
  all_.emplace_back(history_);
  all_.emplace_back(progress_);
}

void CallbackList::attach(const Model& model, const CallbackParams& params) {
  for (const AnyCallback& callback : all_) callback->attach(model, params);
}

void CallbackList::on_train_begin() {
  Logs logs;
  for (const AnyCallback& callback : all_) callback->on_train_begin(logs);
}

void CallbackList::on_train_end() {
  Logs logs;
  for (const AnyCallback& callback : all_) callback->on_train_end(logs);
}

void CallbackList::on_epoch_begin(std::int64_t epoch) {
  Logs logs;
  for (const AnyCallback& callback : all_) callback->on_epoch_begin(epoch, logs);
}

void CallbackList::on_epoch_end(std::int64_t epoch, Logs& logs) {
  for (const AnyCallback& callback : all_) callback->on_epoch_end(epoch, logs);
}

void CallbackList::on_batch_begin(std::int64_t batch, Logs& logs) {
  const auto begun = Clock::now();
  for (const AnyCallback& callback : all_) callback->on_batch_begin(batch, logs);
  batch_begun_ = Clock::now();
  begin_seconds_ = seconds_between(begun, batch_begun_);
}

void CallbackList::on_batch_end(std::int64_t batch, Logs& logs) {
  const auto begun = Clock::now();
  for (const AnyCallback& callback : all_) callback->on_batch_end(batch, logs);
  const double of_batch = seconds_between(batch_begun_, begun);
  slow_begin_.note(begin_seconds_, of_batch);
  slow_end_.note(seconds_between(begun, Clock::now()), of_batch);
}

}  // namespace detail
}  // namespace kolo::keras
