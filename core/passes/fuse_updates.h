// One kernel for the updates of many variables.
#pragma once

#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// Where several variables take the same rule with the same numbers on one device, one FusedApply node takes
/// the place of their Apply nodes: on many small variables (biases, scales of normalization) a step else
/// spends more time on starting kernels than on updating. Elements are computed as before, to the bit.
/// Updates whose gradients lie in memory of one reduction (StepGraph::placements) are fused with one another
/// alone, so that they wait for that reduction only. Of the others, variables of more than kLargestFused
/// elements keep a node of their own: they gain nothing, and would have to keep their gradients until the
/// last one is there. Left as they are: updates whose result is read or fetched, and those between which
/// something looks at one of the variables.
void fuse_updates(StepGraph& graph);

inline constexpr std::int64_t kLargestFused = std::int64_t{1} << 16;

}  // namespace kolo
