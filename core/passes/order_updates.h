// Within a step, ops on one variable take effect in the order in which they were created.
#pragma once

#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// Adds control edges: what was created before an update of a variable and reads it runs before that update;
/// what was created after it, after. A loop reads and updates what its condition and body do. A fetch that
/// would see a later update gets a copy taken in time, and so does a loop that is given the memory of a
/// variable that it updates. Edges lead from older nodes to newer ones alone, so they make no cycle, and the
/// step's result does not depend on the number of threads.
void order_updates(StepGraph& graph);

}  // namespace kolo
