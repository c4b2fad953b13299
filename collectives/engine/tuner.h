// Finds the engine's best fusion bytes and cycle time for a training loop while it runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <kolo/collectives/engine/messages.h>
#include <kolo/collectives/engine/options.h>

namespace kolo::detail {

/// Climbs along one option after the other: a neighbour that is clearly better is kept and the one behind it
/// tried next, until no neighbour of either is better. A setting is worth the bytes per second of the median
/// of several windows; a window is some whole steps, which begin when a name comes again. One thread, on the
/// rank that decides for all.
class Tuner {
 public:
  using Clock = std::chrono::steady_clock;
  /// Begins with what the options say, and leaves alone what they keep. log: to which rows
  /// `windows,fusion_bytes,cycle_ms,bytes_per_second,state` are appended; "": none.
  Tuner(const EngineOptions& options, const std::string& log);

  /// An operation is executed, its name "" where it does not come again. From the next one on this setting is
  /// to be used, if there is one.
  std::optional<Tuning> executed(std::string_view name, std::int64_t bytes, Clock::time_point now);
  /// Nothing is left to try.
  bool is_frozen() const { return frozen_; }

 private:
  struct Option {
    std::vector<double> values;  // ascending; what it began with is among them
    int best = 0;
  };

  bool begins_step(std::string_view name, std::int64_t bytes);
  std::optional<Tuning> judge();
  std::optional<Tuning> advance();
  Tuning setting(int option, int place) const;
  void write(const Tuning& setting, double score, const char* state);

  std::vector<Option> options_;  // fusion bytes, cycle time
  // The search.
  int option_ = 0;     // the one that is climbed along
  int direction_ = 0;  // 0: the setting it began with is being measured
  int place_ = 0;      // of its value that is being measured
  int settled_ = 0;    // options in a row without a better neighbour
  bool moved_ = false;
  double best_score_ = 0;
  bool frozen_ = false;
  // The measurement.
  std::unordered_set<std::size_t> names_;  // of this step
  int steps_ = 0;                          // of this window; below 0: they come before it
  std::int64_t bytes_ = 0;
  Clock::time_point since_;
  std::vector<double> scores_;  // of this setting's windows
  int windows_ = 0;
  std::ofstream log_;
};

}  // namespace kolo::detail
