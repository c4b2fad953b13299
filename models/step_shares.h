// Which samples of an epoch's order a rank takes in a step, whatever the number of ranks.
#pragma once

#include <cstdint>

namespace kolo::models {

/// What becomes of the samples at an epoch's end that do not fill a step.
enum class EpochEnd {
  drop,  // they are left out
  fill   // the epoch's last step takes them alone
};

/// Places [begin, end) of an order.
struct SampleRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

/// Part `part` of `parts` of `samples`: [⌊part·samples ÷ parts⌋, ⌊(part + 1)·samples ÷ parts⌋).
constexpr SampleRange part_of_samples(std::int64_t samples, int part, int parts) {
  return {samples * part / parts, samples * (part + 1) / parts};
}

/// A step takes the epoch's next samples. Each of its passes takes a part of these, and each rank a part of
/// the pass. A value.
struct StepShares {
  std::int64_t samples = 0;    // of an epoch
  std::int64_t step_size = 1;  // samples that all ranks take in a step, ≥ 1
  int passes = 1;              // of a step
  int rank = 0, ranks = 1;
  EpochEnd epoch_end = EpochEnd::drop;

  /// What this rank takes in one pass.
  struct Part {
    SampleRange samples;  // places in the epoch's order; may be none
    // What to compute: those, or where they are none the step's first ones, as many as it has up to a usual
    // part. A model need not know what to make of no samples, and batch normalization makes of one alone a
    // variance of 0.
    SampleRange computed;
    std::int64_t pass_end = 0;  // samples of the epoch that are taken once the pass is over
    /// samples · ranks · passes ÷ samples of the step: the mean over the rank's samples, times this and
    /// averaged over passes and ranks, is the mean over the samples of the step. Exactly 1 where all parts
    /// are equal.
    float weight = 1;
  };
  /// begin: samples of the epoch that are taken before the step.
  Part part(std::int64_t begin, int pass) const;

  std::int64_t steps_per_epoch() const { return steps_left(0); }
  /// Steps that the epoch still has where so many of its samples are taken, whatever the steps before took.
  std::int64_t steps_left(std::int64_t taken) const;
  /// No step of the epoch begins where so many of its samples are taken.
  bool is_over(std::int64_t taken) const;
  /// Samples that this rank takes in an epoch.
  std::int64_t own_samples() const;
  /// All parts of all steps are equal: every weight is 1.
  bool are_equal() const;
};

}  // namespace kolo::models
