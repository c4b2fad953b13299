// Numbers that keep small gradients of 16-bit types from vanishing, found while training.
#pragma once

#include <cstdint>

namespace kolo {

/// The loss is multiplied by a scale before it is differentiated, and the gradients are divided by it before
/// they are applied. Where a gradient is not finite, on whichever rank, no rank applies the step: variables,
/// slots and the global step stay, and the scale is divided by `factor`. After `growth_steps` good steps in a
/// row it is multiplied by it. The scale is a variable of the graph, "loss_scale", saved with a checkpoint.
/// Gradients of f16 and bf16 variables are reduced scaled, and divided in f32; the rules of kolo's own
/// optimizers update f32 and f64.
struct DynamicLossScale {
  double initial = 32768;
  double factor = 2;
  std::int64_t growth_steps = 2000;
  double minimum = 1;
  double maximum = 16777216;
};

}  // namespace kolo
