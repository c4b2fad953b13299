// Several backward passes for one update: gradients are summed on this rank until the last pass reduces and
// applies the sum.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <kolo/optimizer/optimizer.h>

namespace kolo::detail {

/// The sums, `<variable>/gradient_sum`, and the number of passes since the last update, "backward_passes",
/// are global variables that a checkpoint may lack; the sums are each rank's own. All ranks count alike, so
/// that all reduce in the same pass.
class BackwardPasses {
 public:
  /// passes > 1. average: the sum is divided by their number.
  BackwardPasses(int passes, bool average) : passes_(passes), average_(average) {}

  /// The gradients of all passes since the last update. They, and what is computed from them, exist in the
  /// last pass only. Slices become whole gradients.
  std::vector<GradientPair> sum(const Scope& s, std::span<const GradientPair> local);
  /// The operation of every pass: keeps the sums, and does what `apply` makes in the last one. apply is given
  /// the gradients as they are there.
  Operation in_last_pass(const Scope& s, std::span<const GradientPair> reduced,
                         const std::function<Operation(std::span<const GradientPair>)>& apply);

 private:
  void make_counter(const Scope& s);
  Variable make_sum(const Scope& s, const Variable& variable);

  int passes_;
  bool average_;
  Variable counter_;
  Output is_last_;
  std::vector<Operation> when_last_, otherwise_;  // of `sum`, to be done with the next in_last_pass
};

}  // namespace kolo::detail
