// How the ranks that train a model together stop, end and fail together: by the flags of its training step.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/runtime/step_vote.h>
#include <kolo/core/training/drift_check.h>
#include <kolo/models/keras/trainer_internal.h>

namespace kolo::keras::detail {

/// Of a step without a distributed optimizer, and of one rank: there is nobody to agree with. One thread.
class RankAgreement {
 public:
  explicit RankAgreement(Trainer& trainer);

  bool is_alone() const { return votes_.empty(); }
  /// Pairs (what, own). Throws FailedPreconditionError on every rank `Ranks disagree on the <what>: <a> on
  /// rank 0 but <b> on rank <r>` unless all have the same. Collective, also where the step is not
  /// distributed.
  static void compare(const std::vector<std::pair<std::string, std::string>>& texts);

  /// Before batch `batch` of the training, counted from 1: where the weights are to be compared, they are.
  void compare_weights(std::int64_t batch);
  /// Goes with the next batch.
  void wish_to_stop();
  /// Behind a batch: some rank has wished to stop with it. Throws FailedPreconditionError on all ranks where
  /// their weights differ.
  bool stops();
  /// Behind a batch that threw OutOfRangeError: another rank has no more data.
  bool data_ended();
  /// This rank's data have ended, or it has failed: the others know when it returns.
  void leave(StepFlag flag, const std::string& text);
  /// At an epoch's end: whether any rank says so. Collective.
  bool any(bool own) const;

 private:
  StepVotes votes_;
  std::vector<kolo::detail::DriftCheck> drift_;  // by vote
};

}  // namespace kolo::keras::detail
