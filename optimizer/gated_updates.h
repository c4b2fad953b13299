// Updates that are made in some steps only: once for several backward passes, and where the gradients of a
// scaled loss are finite.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <kolo/optimizer/loss_scale.h>
#include <kolo/optimizer/optimizer.h>

namespace kolo::detail {

/// Several backward passes for one update: gradients are summed on this rank until the last pass reduces and
/// applies the sum.
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

/// Dynamic loss scaling as nodes of the graph. One thread builds a graph.
class LossScaling {
 public:
  /// Throws InvalidArgumentError for numbers that cannot be.
  explicit LossScaling(const DynamicLossScale& options);

  /// The scale as a variable; none before `scaled`.
  const Variable& scale() const { return scale_; }
  /// What the gradients start from: grad_loss, or ones, times the scale.
  Output scaled(const Scope& s, Output loss, Output grad_loss);
  /// The gradients without the scale; their finiteness decides on the next in_good_step.
  std::vector<GradientPair> unscaled(const Scope& s, std::span<const GradientPair> scaled);
  /// Decides on the next in_good_step in another way: bool, a scalar, the same on all ranks.
  void decide_by(Output finite) { finite_ = finite; }
  /// As unscaled, without deciding: in_good_step then looks at what it is given.
  std::vector<GradientPair> unscaled_unchecked(const Scope& s, std::span<const GradientPair> scaled);
  /// Does what `apply` makes of the gradients where all are finite, and moves the scale.
  Operation in_good_step(const Scope& s, std::span<const GradientPair> reduced,
                         const std::function<Operation(std::span<const GradientPair>)>& apply);

 private:
  void make_state(const Scope& s);
  Output is_finite(const Scope& s, std::span<const GradientPair> pairs) const;
  Operation count_good_step(const Scope& s);

  DynamicLossScale options_;
  Variable scale_, good_steps_;
  Output finite_;
};

}  // namespace kolo::detail
