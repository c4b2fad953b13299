// --scale-rate: the learning rate follows the global batch where that changes from start to start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <kolo/core/training/hooks.h>

namespace kolo::models {

/// What a global batch that grows by q does to the rate.
enum class RateRule {
  none,    // nothing
  linear,  // q times
  root     // √q times
};

/// One thread.
class RateScale {
 public:
  struct Options {
    RateRule rule = RateRule::none;
    std::int64_t global_batch = 1;                     // of this start
    double rate = 0;                                   // that belongs to the first global batch
    std::int64_t steps = 100;                          // in which the rate gets to its new value
    std::optional<std::int64_t> batch_of_folder = {};  // of what the training goes on from, if that is known
  };
  explicit RateScale(const Options& options);

  /// Goes with checkpoints: the global batch of the training's first start, and where the rate stands. With
  /// another rate than the training had, this start's batch counts as its first.
  SavedState state();
  /// Once the state is restored, before the first step; on all ranks. Rank 0 says what changes.
  void start(std::int64_t step);
  /// By which the rate of the step behind `step` is multiplied.
  float factor(std::int64_t step) const;

 private:
  struct Place {
    std::int64_t first_batch = 1, batch = 1;
    double from = 1;         // the factor before the last change
    std::int64_t begin = 0;  // the step after which it began
    double rate = 0;
  };
  double ratio(std::int64_t batch, std::int64_t to) const;
  double factor_of(const Place& place, std::int64_t step) const;
  std::string text() const;
  void take(const std::string& text);

  const Options options_;
  Place place_;
};

}  // namespace kolo::models
