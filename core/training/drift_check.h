// Whether the ranks of a training still hold the same weights.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/runtime/step_vote.h>
#include <kolo/core/runtime/weight_sums.h>

namespace kolo::detail {

/// Every so many steps each rank puts one number of the bits of the variables that a vote's schedule trains
/// into the step; where the numbers differ, the ranks of the vote exchange one for each variable. Variables
/// that are a rank's own, or parts, are left out. One thread, between the steps.
class DriftCheck {
 public:
  /// every: steps; 0: never. The session outlives it.
  DriftCheck(Session& session, std::shared_ptr<StepVote> vote, std::int64_t every);

  /// Before step `step`, counted from 1. Reads the variables where the steps before it are a multiple of
  /// `every`. The number travels with the first step from then on in which the ranks combine anything.
  void before(std::int64_t step);
  /// After it. Collective over the vote's ranks where the outcome says that numbers differ: throws
  /// FailedPreconditionError `weights differ: "fc1/w" on rank 3 since a step in 101..200 …` on all of them.
  void after(const StepFlags& outcome);

 private:
  WeightSums sums(std::uint64_t seed) const;

  Session& session_;
  std::shared_ptr<StepVote> vote_;
  std::int64_t every_;
  std::vector<Variable> variables_;     // found before the first comparison
  std::optional<std::int64_t> begin_;   // the first step of this object
  std::int64_t compared_ = 0;           // the steps behind which the numbers were the same
  std::optional<std::int64_t> summed_;  // the steps behind which sums_ were made
  WeightSums sums_;
  bool is_due_ = false;  // they have not travelled yet
};

}  // namespace kolo::detail
