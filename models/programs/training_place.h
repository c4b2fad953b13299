// How far a training has come, and how many steps are left of its passes over the samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <kolo/models/batches.h>
#include <kolo/models/step_shares.h>

namespace kolo::models {

/// Between two steps.
struct TrainingPlace {
  std::int64_t step = 0;
  std::optional<BatchPosition> position = BatchPosition{};  // none: the checkpoint does not tell
};

/// That of rank 0's newest checkpoint whose files fit each other, the beginning where there is none. Tensors
/// are not read, so that a session may find another one: an older one where a tensor is damaged, or a newer
/// one where another process has just saved it. All ranks call it together. samples: of an epoch, in which
/// the position is (in_epoch_of).
TrainingPlace place_in(const std::string& folder, std::int64_t samples);

/// Epochs are counted by the samples that are taken: steps before may have had another size. A value.
class EpochCount {
 public:
  EpochCount() = default;
  /// passes: batches of `shares` that make a step.
  EpochCount(const StepShares& shares, int passes) : shares_(shares), passes_(passes) {}

  /// Where `epochs` epochs are over: the place's step where they are. One step at least from step 0.
  std::int64_t last_step(const TrainingPlace& from, std::int64_t epochs) const;
  /// How many are over, with the part of the present one whose samples are taken.
  double done(const TrainingPlace& at) const;
  /// The same of a place with a position, in a training that goes on from `start`: where that has none, the
  /// source of the batches began at its first sample, and the steps before count besides.
  double done(const TrainingPlace& at, const TrainingPlace& start) const;
  /// Of a place where nothing is left to do: `has seen 2 of --epochs 2`, and what the epoch lacks to be
  /// whole.
  std::string text(const TrainingPlace& at, std::int64_t epochs) const;
  /// The source of the batches stands there.
  bool is_at(const TrainingPlace& place, const BatchPosition& position) const;

 private:
  std::int64_t batches_done(const TrainingPlace& at) const;

  StepShares shares_;
  int passes_ = 1;
};

}  // namespace kolo::models
