// Dynamic loss scaling as nodes of the graph.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <kolo/optimizer/loss_scale.h>
#include <kolo/optimizer/optimizer.h>

namespace kolo::detail {

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
