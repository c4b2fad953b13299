// Gradients that exist in some steps only.
#pragma once

#include <span>
#include <vector>

#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/basic.h>
#include <kolo/optimizer/optimizer.h>

namespace kolo::detail {

/// The same gradients, each only where the branch of `branch` is taken: what is computed from them is skipped
/// with them. Slices stay slices.
inline std::vector<GradientPair> in_branch_of(const Scope& branch, std::span<const GradientPair> pairs) {
  std::vector<GradientPair> inside(pairs.begin(), pairs.end());
  for (GradientPair& pair : inside) {
    if (!pair.gradient) continue;
    auto slices = indexed_slices(pair.gradient);
    if (!slices) {
      pair.gradient = identity(branch, pair.gradient);
      continue;
    }
    slices->values = identity(branch, slices->values);
    slices->indices = identity(branch, slices->indices);
    pair.gradient = to_dense(branch, *slices);
  }
  return inside;
}

}  // namespace kolo::detail
