// Keeping gradients from growing too large. Placed between compute_gradients and apply_gradients; behind a
// DistributedOptimizer's compute_gradients they clip the average over all ranks.
#pragma once

#include <span>
#include <vector>

#include <kolo/core/ops/math.h>  // clip_by_value
#include <kolo/optimizer/optimizer.h>
#include <kolo/optimizer/rule_optimizer.h>

namespace kolo {

// Gradients that are slices (core/graph/indexed_slices.h) stay slices: what is said of elements and norms
// holds for their values. Types: f32, f64. A limit that is a number must not be negative (norms: must be
// positive), else InvalidArgumentError.

/// gradient · c / max(norm, c), with c = clip_norm: of length c at most.
Output clip_by_norm(const Scope& s, Output gradient, Hyperparameter clip_norm);

/// What clip_by_global_norm makes of a list: the clipped gradients, and their norm before.
struct ClippedGradients {
  Outputs gradients;  // in the order given, empty where none was given
  Output norm;        // before clipping
};

/// All gradients shortened by one factor, c · min(1 / G, 1 / c), so that together they are of length c at
/// most; G: the length of all of them, or `use_norm` if it is given. A G that is infinite or NaN makes all
/// elements NaN.
ClippedGradients clip_by_global_norm(const Scope& s, const Outputs& gradients, Hyperparameter clip_norm,
                                     Output use_norm = {});
/// The same on what compute_gradients gives.
std::vector<GradientPair> clip_by_global_norm(const Scope& s, std::span<const GradientPair> gradients,
                                              Hyperparameter clip_norm);

}  // namespace kolo
