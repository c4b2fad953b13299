// Runs the loops of a graph: each iteration is a run of plans of the loop's own.
#pragma once

#include <memory>

#include <kolo/core/runtime/plan.h>

namespace kolo {

/// What a loop's node needs to run, for StepNode::resource; null for nodes that are no loop. Throws what
/// Plan::compile throws for the ops of the loop.
std::shared_ptr<void> compile_loop(const StepGraph& graph, const StepNode& node,
                                   PlanEnvironment& environment);

}  // namespace kolo
