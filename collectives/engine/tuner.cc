#include <kolo/collectives/engine/tuner.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include <kolo/core/base/log.h>

namespace kolo::detail {
namespace {

using namespace std::chrono_literals;

// More than the noise of a busy machine, less than what is worth having.
constexpr double kClearlyBetter = 1.03;
constexpr int kWarmUpSteps = 2;
constexpr int kSteps = 10;
constexpr auto kLeastWindow = 50ms;
constexpr int kWindows = 3;
// Noise could make it go round and round.
constexpr int kMostSettings = 40;

constexpr double kMiB = 1 << 20;
const std::vector<double> kFusionBytes = {kMiB / 4, kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB};
const std::vector<double> kCycleMs = {0.1, 0.25, 0.5, 1, 2, 5, 10};

}  // namespace

Tuner::Tuner(const EngineOptions& options, const std::string& log) {
  const auto option = [](double value, bool keep, std::vector<double> values) {
    if (keep) return Option{{value}, 0};
    const auto place = std::lower_bound(values.begin(), values.end(), value);
    const auto best = static_cast<int>(place - values.begin());
    if (place == values.end() || *place != value) values.insert(place, value);
    return Option{std::move(values), best};
  };
  const EngineOptions defaults;
  options_ = {
      option(static_cast<double>(options.fusion_bytes),
             options.keep_fusion_bytes || options.fusion_bytes != defaults.fusion_bytes, kFusionBytes),
      option(options.cycle_time.count(), options.keep_cycle_time || options.cycle_time != defaults.cycle_time,
             kCycleMs)};
  place_ = options_[0].best;
  steps_ = -kWarmUpSteps;
  frozen_ = options_[0].values.size() + options_[1].values.size() == 2;
  if (log.empty()) return;
  log_.open(log, std::ios::app);
  log_ << "windows,fusion_bytes,cycle_ms,bytes_per_second,state\n";
  log_.flush();
  if (!log_) log_warning("KOLO_AUTOTUNE_LOG: {} cannot be written", log);
}

// ---- The measurement.

std::optional<Tuning> Tuner::executed(std::string_view name, std::int64_t bytes, Clock::time_point now) {
  if (frozen_) return std::nullopt;
  std::optional<Tuning> next;
  if (begins_step(name, bytes)) {
    ++steps_;
    if (steps_ == 0) {
      since_ = now;
      bytes_ = 0;
    } else if (steps_ >= kSteps && now - since_ >= kLeastWindow) {
      scores_.push_back(static_cast<double>(bytes_) / std::chrono::duration<double>(now - since_).count());
      ++windows_;
      steps_ = 0;
      since_ = now;
      bytes_ = 0;
      if (scores_.size() == kWindows) next = judge();
    }
  }
  bytes_ += bytes;
  return next;
}

// Calls without a name are told apart by their size.
bool Tuner::begins_step(std::string_view name, std::int64_t bytes) {
  const std::size_t key =
      name.empty() ? std::hash<std::int64_t>()(bytes) : std::hash<std::string_view>()(name);
  if (names_.insert(key).second) return false;
  names_.clear();
  names_.insert(key);
  return true;
}

// ---- The search.

std::optional<Tuning> Tuner::judge() {
  std::nth_element(scores_.begin(), scores_.begin() + kWindows / 2, scores_.end());
  const double score = scores_[kWindows / 2];
  scores_.clear();
  steps_ = -kWarmUpSteps;
  Option& option = options_[option_];
  const bool is_better = direction_ == 0 || score > best_score_ * kClearlyBetter;
  write(setting(option_, place_), score, is_better ? "better" : "worse");
  if (is_better) {
    best_score_ = score;
    option.best = place_;
    moved_ = moved_ || direction_ != 0;
  } else if (direction_ > 0 && !moved_) {
    direction_ = -1;  // the other way
    place_ = option.best;
    return advance();
  } else {
    direction_ = 2;  // done with this option
  }
  if (direction_ == 0) direction_ = 1;
  return advance();
}

// To the next place that is to be measured; without one all ranks stay with the best.
std::optional<Tuning> Tuner::advance() {
  while (settled_ < static_cast<int>(options_.size()) && windows_ < kMostSettings * kWindows) {
    const int size = static_cast<int>(options_[option_].values.size());
    const int next = options_[option_].best + (direction_ > 0 ? 1 : -1);
    if (direction_ != 2 && next >= 0 && next < size) {
      place_ = next;
      return setting(option_, place_);
    }
    if (direction_ == 1 && !moved_) {
      direction_ = -1;
      continue;
    }
    settled_ = moved_ ? 1 : settled_ + 1;
    option_ = (option_ + 1) % static_cast<int>(options_.size());
    direction_ = 1;
    moved_ = false;
  }
  frozen_ = true;
  const Tuning best = setting(option_, options_[option_].best);
  write(best, best_score_, "frozen");
  return best;
}

Tuning Tuner::setting(int option, int place) const {
  const auto value = [&](int i) { return options_[i].values[i == option ? place : options_[i].best]; };
  return {static_cast<std::int64_t>(value(0)), value(1)};
}

void Tuner::write(const Tuning& setting, double score, const char* state) {
  if (!log_.is_open()) return;
  log_ << fmt::format("{},{},{},{:.0f},{}\n", windows_, setting.fusion_bytes, setting.cycle_ms, score, state);
  log_.flush();
}

}  // namespace kolo::detail
