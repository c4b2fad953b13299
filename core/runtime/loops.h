// Runs the loops of a graph: each iteration is a run of plans of the loop's own.
#pragma once

#include <memory>

#include <kolo/core/runtime/plan.h>

namespace kolo {

/// What a loop's node needs to run, for StepNode::resource; null for nodes that are no loop. `depth` loops
/// are around it. Throws what Plan::compile throws for the ops of the loop, and InvalidArgumentError for a
/// loop whose tensors do not fit each other, or that lies in 10 others.
std::shared_ptr<void> compile_loop(const StepGraph& graph, const StepNode& node, int depth,
                                   PlanEnvironment& environment);

}  // namespace kolo
