// Within a step, ops on one variable take effect in the order in which they were created.
#pragma once

#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// Adds control edges: what was created before an update of a variable and reads it runs before that update;
/// what was created after it, after. A fetch that would see a later update gets a copy taken in time. Edges
/// lead from older nodes to newer ones alone, so they make no cycle, and the step's result does not depend on
/// the number of threads.
void order_updates(StepGraph& graph);

}  // namespace kolo
